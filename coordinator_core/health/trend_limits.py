"""Limits of the trend of a position, and of the growth that shows a group falling behind. Times in ms."""

#: Span of time whose last commit is a point, and number of points that are kept: a quarter of an hour of steady commits.
POINT_MS = 60_000
POINTS = 16
#: Longest window of a position that does not move, and shortest window of any trend.
STILL_MS = 900_000
LEAST_MS = 60_000
#: Shortest distance of two points whose slope counts. Any window of LEAST_MS has points that are as far apart.
PAIR_MS = LEAST_MS // 2
#: A position is still after a silence of this multiple of the longest distance of points, and of a minute at least.
STILL_SHARE = 1.25
#: A group has caught up where its lag falls to this share, by more than half of what was written meanwhile.
CAUGHT_UP_SHARE = 0.1
#: Points in a window are at most half of it apart.
DISTANCES = 2
#: Growth is looked for in windows of one, two and three times `falls_behind_ms`, each in this number of parts.
WINDOWS = (1, 2, 3)
PARTS = 4
#: Growth is sustained if each part has at least this share of a quarter of it, and no bound of a part is farther from the line
#: than that share of it.
LEAST_PART = 0.1
LARGEST_BEND = 0.25
#: Multiple of `falls_behind_ms` before a window in which its traffic is compared.
EARLIER = 3
#: Growth by chance is about the square root of the number of records; it counts from this multiple on.
CHANCE = 2.0
