"""Bytes in place of the subscription of a classic consumer, and how loaders since 2.4 handle them."""

#: Defect → the bytes. The topics of the group are unknown, or those that can be read.
TAKEN = {
    "nothing": b"",
    "half a version": b"\0",
    "a version": b"\0\0",
    "half a count": b"\0\0\0\0",
    "half the length of a topic": b"\0\0\0\0\0\x01\0",
    "no user data": b"\0\0\0\0\0\x01\0\x01a",
    "half the length of user data": b"\0\0\0\0\0\x01\0\x01a\0\0",
    "null user data": b"\0\0\0\0\0\x01\0\x01a\xff\xff\xff\xff",
    "version 1 without owned partitions": b"\0\1\0\0\0\x01\0\x01a\xff\xff\xff\xff",
    "version 1 with too many owned partitions": b"\0\1\0\0\0\x01\0\x01a\xff\xff\xff\xff\0\0\0\x07",
    "a negative version": b"\xff\xff\0\0\0\x01\0\x01a\xff\xff\xff\xff",
}

#: The loader gives up the partition: it loads no group from it.
REFUSED = {
    "more topics than bytes": b"\0\0\0\0\0\x09",
    "null for topics": b"\0\0\xff\xff\xff\xff",
    "a negative number of topics": b"\0\0\xff\xff\xff\xfe",
    "a topic longer than what is left": b"\0\0\0\0\0\x01\0\x05ab",
    "null for a topic": b"\0\0\0\0\0\x01\xff\xff\0\0\0\0",
    "user data longer than what is left": b"\0\0\0\0\0\x01\0\x01a\0\0\0\x05xy",
}
