-- Decides on hits and counts them, for all limits of all keys in one step.
--
-- KEYS   the names under which the states are kept, one for each item: an item
--        is one key of one rule, with the limits of that rule.
-- ARGV   1  eight bytes that come back at the head of the reply
--        2  take, peek, back (give back, then look), refund or reset
--        3  milliseconds that a state is kept longer than it is needed
--        4  the time in microseconds since the Unix epoch; empty: this server's
--        then for each item
--             its limits, 21 bytes each: kind (the algorithm's number × 2, + 1
--             if its windows are aligned to the epoch), window, precision, quota,
--             capacity (the burst of a token bucket, else the quota); of a
--             lockout the first wait in place of the precision, and 16 bytes
--             more: factor, longest wait, decay. One byte more at the end: a
--             value that cannot be read denies its key
--             the cost
--             for back and refund: the time of the charge, and for each limit
--             what was said after it of the time until all is free again
-- Reply  a string: the eight bytes, and, but for refund and reset, for each
--        item: the time of the decision, and for each of its limits: what
--        remains, how long until all is free again, how long until more remains
--        (0 if nothing is missing), and how long until the cost is admitted (0
--        now, -1 never). One byte more at the end: a value could not be read.
--
-- The caller's clock may be behind the one that has written a state. A stored
-- time less than one window ahead is believed: the decision is made at the
-- stored time, and waits are counted from now. One window ahead or more, only a
-- step of the clock explains it, and the time is moved back to now.
--
-- Times and counts are whole numbers. A number of Lua is exact below 2^53,
-- which every time and every count is; where a product may be above, muldiv
-- works in parts. Integers in strings are little-endian.

local ceil, unpack_list = math.ceil, unpack
local pack, unpack = struct.pack, struct.unpack
local MOST = 2147483647 -- the largest quota, and so the largest count
-- The algorithms' numbers, which also name them in stored states: the wire
-- numbers of internal/meter/algorithm.go.
local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT = 0, 1, 2, 3, 4, 5

local verb, slack, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not now then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- absent reports whether a key of which GETRANGE returned nothing does not exist:
-- an empty value is somebody else's.
local function absent(key) return redis.call('PTTL', key) == -2 end
