"""The broker generations that tests query, and the records that a log may hold so that they load it to its end."""

from dataclasses import dataclass

#: Record types that no released broker knows, besides those that a generation does not know yet.
_NEVER_DEFINED = (18, 24, 99, 1000)


@dataclass(frozen=True)
class Generation:
    """One release, which represents its era.

    A loader gives up its partition at an unknown value version, and before 3.4.1 (KIP-915) at an unknown record type too.
    `offset_versions`, `group_versions` and `unknown_types` are what a log for it may hold. `old_commit_versions` are the
    value versions of record type 0. Request versions are the most detailed ones that still name topics.
    """

    version: str
    era: str
    offset_versions: tuple[int, ...]
    old_commit_versions: tuple[int, ...]
    group_versions: tuple[int, ...]
    unknown_types: tuple[int, ...] = ()
    #: Record batch v2, and with it transactions (0.11).
    batches: bool = True
    zstd: bool = True
    #: Groups of KIP-848, KIP-932 and KIP-1071.
    modern_groups: bool = False
    offset_fetch: int = 9
    list_groups: int = 5
    describe_groups: int = 5


GENERATIONS = {
    generation.version: generation
    for generation in (
        Generation(
            "0.10.2.2",
            "0.10",
            offset_versions=(0, 1),
            old_commit_versions=(0, 1),
            group_versions=(0, 1),
            batches=False,
            zstd=False,
            offset_fetch=2,
            list_groups=0,
            describe_groups=0,
        ),
        Generation(
            "2.8.2",
            "3",
            offset_versions=(0, 1, 2, 3),
            old_commit_versions=(0, 1),
            group_versions=(0, 1, 2, 3),
            offset_fetch=7,
            list_groups=4,
        ),
        Generation(
            "3.9.1",
            "3",
            offset_versions=(0, 1, 2, 3, 4),
            old_commit_versions=(0, 1),
            group_versions=(0, 1, 2, 3, 4),
            unknown_types=(3, 5, 8, 11, 17, *_NEVER_DEFINED),
        ),
        Generation(
            "4.3.0",
            "4",
            offset_versions=(0, 1, 2, 3, 4),
            # with any other value version, type 0 is an unknown record to it
            old_commit_versions=(0,),
            group_versions=(0, 1, 2, 3, 4),
            unknown_types=(9, *_NEVER_DEFINED),
            modern_groups=True,
        ),
    )
}
