-- Decides on hits and counts them, for all limits of all keys in one step.
--
-- KEYS   the names under which the states are kept, one for each item: an item
--        is one key of one rule, with the limits of that rule.
-- ARGV   1  eight bytes that come back at the head of the reply
--        2  take, peek, back (give back, then look), refund or reset
--        3  milliseconds that a state is kept longer than it is needed
--        4  the time in microseconds since the Unix epoch; empty: this server's
--        then for each item
--             its limits, 21 bytes each: kind (algorithm × 2, + 1 if its
--             windows are aligned to the epoch), window, precision, quota,
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

local floor, sub, byte, rep = math.floor, string.sub, string.byte, string.rep
local max, ceil, unpack_list = math.max, math.ceil, unpack
local pack, unpack = struct.pack, struct.unpack
local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT = 0, 1, 2, 3, 4, 5
local MOST = 2147483647 -- the largest quota, and so the largest count

local verb, slack, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not now then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- muldiv returns floor(a × b / c) and the remainder, exactly, for whole numbers
-- from 0: a < 2^53, b < 2^31, c < 2^45, and a quotient below 2^53.
local function muldiv(a, b, c)
  local p = a * b
  if p < 9007199254740992 then
    local r = p % c
    return (p - r) / c, r
  end
  -- a = q × c + r, so that what is left is r × b / c with r < c: by long
  -- division, in digits of b so small that two products fit into 2^53.
  local r = a % c
  local q = (a - r) / c * b
  local base, digit = 128, 268435456
  if c < 2147483648 then base, digit = 1048576, 1048576 end
  local quotient, left = 0, 0
  while digit >= 1 do
    local d = floor(b / digit)
    b = b - d * digit
    local x = left * base + r * d
    left = x % c
    quotient = quotient * base + (x - left) / c
    digit = digit / base
  end
  return q + quotient, left
end

-- absent tells whether a key of which GETRANGE returned nothing does not exist:
-- an empty value is somebody else's.
local function absent(key) return redis.call('PTTL', key) == -2 end

-- anchor returns where the window begins that a first hit now opens.
local function anchor(m)
  if m.aligned then return now - now % m.window end
  return now
end

-- Each algorithm is a table of functions on a meter m, which is one limit of
-- one item:
--   load(m, v, at)   reads its state in v from at on and brings it to now;
--                    false if it is none. m.mended: its time was so far ahead
--                    of now that it has been moved back.
--   time(m)          its time, nil if it has none
--   wait(m, cost)    how long until cost is admitted, 0 now
--   left(m)          the largest cost admitted now, or below 0 for none
--   charge(m, cost), refund(m, cost, at, reset)
--   dump(m)          the state as load reads it, nil where there is none
--   expiry(m)        the time from which the state means the same as none
-- They are made when first needed: most calls need one of them.
local make = {}
