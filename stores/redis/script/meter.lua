local ceil, unpack_list = math.ceil, unpack
local pack, unpack = struct.pack, struct.unpack
local pcall_redis = redis.pcall
local MOST = 2147483647 -- the largest quota, and so the largest count
-- The algorithms' numbers, which also name them in stored states: the wire
-- numbers of internal/meter/algorithm.go.
local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT, CALENDAR, IN_FLIGHT = 0, 1, 2, 3, 4, 5, 6, 7
-- The verbs: charge if all is admitted, look, give back and look, give back, forget,
-- charge whatever is admitted, deny for a time, look and charge the limits that deny and
-- count that, end leases, renew leases, give back the newest hits and look.
local TAKE, BACK, REFUND, RESET, CHARGE, BLOCK, RELEASE, RENEW, GRANT = 1, 3, 4, 5, 6, 7, 8, 9, 10
local now, first_key -- of the decision that is being made: its time, and the place of its first key

-- The beginning of the error of a decision that has been made in part.
local SOME_WRITTEN = 'FLOODGATE some of several keys have been written: '

-- error_of returns the text of an error that a command replied, else nil.
local function error_of(reply) return type(reply) == 'table' and reply.err or nil end

-- absent reports whether a key of which GETRANGE returned nothing does not exist:
-- an empty value is somebody else's.
local function absent(key) return pcall_redis('PTTL', key) == -2 end

local floor, max, sub, byte, rep = math.floor, math.max, string.sub, string.byte, string.rep

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

-- anchor returns where the window begins that a first hit now opens.
local function anchor(m)
  if m.aligned then return now - now % m.window end
  return now
end

-- Each algorithm has a file of its own, the twin of the file of that name in
-- internal/meter, with its functions in the same order. It is a table of
-- functions on a meter m, which is one limit of one item:
--   load(m, v, at)   reads its state in v from at on and brings it to now, as
--                    ReadState and Advance; false if it is no state of it.
--                    m.mended: its time was so far ahead of now that it has been
--                    moved back.
--   dump(m)          the state as load reads it, nil if there is none, as
--                    AppendState
--   time(m)          its time, nil if it has none, as At
--   left(m)          the largest cost admitted now, or below 0 for none, as
--                    Remaining
--   charge(m, cost)  also of a cost above what is left; at most MOST
--   wait(m, cost)    how long until cost is admitted, 0 now
--   refund(m, cost, at, reset)
--   grant(m, n)      gives back up to n hits, the newest first; nil of those that it
--                    leaves alone
--   expiry(m)        the time from which the state means the same as none
-- They are made when first needed: most calls need one of them.
local make = {}
