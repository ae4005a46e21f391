-- Makes decisions on hits and counts the hits. Each decision is made in one step,
-- for all limits of all its keys. The decisions of one call are made in order, and
-- independently: none fails, or charges anything, because of another one.
--
-- KEYS   the names of the states, for each decision one for each of its items: an
--        item is one key of one rule, with the limits of that rule
-- ARGV   1  eight bytes that begin the reply (8), the milliseconds that a state is
--           kept longer than it is needed (4), the number of decisions (4), and
--           for each decision
--             its verb (1) and the number of bytes after this head (4)
--             the number of items (4)
--             the time in microseconds since the Unix epoch; 0: the server's (8)
--           and for each of its items
--             the place of the rule's limits in ARGV (4)
--             the cost (8)
--             for back and refund: the time of the charge (8), and for each limit
--             the time until all was free again, as that take returned it (8)
--           A decision that is not to be made, SKIP, has names, but no items here.
--        2… the limits of a rule, 21 bytes each: kind (the algorithm's number × 2, + 1
--           if its windows are aligned to the epoch), window, precision, quota,
--           capacity (the burst of a token bucket, else the quota); of a lockout the
--           first wait instead of the precision, and 16 bytes more: factor, longest
--           wait, decay. One byte more at the end: a value that cannot be read
--           denies its key
-- Reply  a string: the eight bytes, and for each decision one byte
--          0  it was made. For take, peek and back there follow, for each item: the
--             time of the decision, and for each limit: what remains, how long
--             until all is free again, how long until more remains (0 if nothing is
--             missing), and how long until the cost is admitted (0 now, -1 never)
--          1  the same, and a stored value could not be read
--          2  it failed: the length of the error's text (4) and the text
--          3  it was skipped
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
local pcall_redis = redis.pcall
local MOST = 2147483647 -- the largest quota, and so the largest count
-- The algorithms' numbers, which also name them in stored states: the wire
-- numbers of internal/meter/algorithm.go.
local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT = 0, 1, 2, 3, 4, 5
-- The verbs: look, charge, give back and look, give back, forget.
local SKIP, TAKE, PEEK, BACK, REFUND, RESET = 0, 1, 2, 3, 4, 5

local input = ARGV[1]
local slack, count = unpack('<I4I4', input, 9)
local replies = { string.sub(input, 1, 8) }
-- The decision that comes next: its number, and where it begins in input and KEYS.
local number, from, first_key = 1, 17, 1
local now, server_now -- the time of the decision, and of the server

-- begin reads the head of the next decision. It returns the verb, how many bytes
-- the items take, how many items there are, and where the first one is.
local function begin()
  local verb, size, items, time, at = unpack('<I1I4I4i8', input, from)
  now = time
  if time == 0 and verb ~= SKIP then
    if not server_now then
      local t = redis.call('TIME')
      server_now = tonumber(t[1]) * 1000000 + tonumber(t[2])
    end
    now = server_now
  end
  return verb, size, items, at
end

-- finish ends the decision.
local function finish(reply, size, items)
  number, from, first_key = number + 1, from + 17 + size, first_key + items
  replies[number] = reply
end

-- failed returns the reply of a decision that failed.
local function failed(text) return pack('<I1I4', 2, #text) .. text end

-- The beginning of the error of a decision that has been made in part.
local SOME_WRITTEN = 'FLOODGATE some of several keys have been written: '

-- error_of returns the text of an error that a command replied, else nil.
local function error_of(reply) return type(reply) == 'table' and reply.err or nil end

-- absent reports whether a key of which GETRANGE returned nothing does not exist:
-- an empty value is somebody else's.
local function absent(key) return pcall_redis('PTTL', key) == -2 end
