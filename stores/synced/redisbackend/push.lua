-- Adds differences to counters, once.
--
-- KEYS   1   the node's name, under which the last sequence applied is kept
--        2…  the counters
-- ARGV   1   the batch's sequence; 0: it is applied whatever came before
--        2   milliseconds that the node is remembered
--        then for each counter
--            the difference
--            milliseconds that the counter lives from now
-- Reply  the totals after that, in order

-- All values are read before one is written, and all writes are SET: if the server
-- denies a command, it has applied nothing. Somebody else's value counts as 0.
local MOST = 9007199254740991 -- the largest whole number that Lua keeps exactly
local values = {}
for i = 1, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'table' then
    if not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
    value = nil
  end
  local number = value and string.match(value, '^%d+$') and tonumber(value)
  values[i] = number and number <= MOST and number or 0
end

local sequence = tonumber(ARGV[1])
local fresh = sequence == 0 or sequence > values[1]
if fresh and sequence > 0 then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end

local totals = {}
for i = 2, #KEYS do
  local diff, life, total = ARGV[2 * i - 1], ARGV[2 * i], values[i]
  if fresh and diff ~= '0' then
    total = math.min(MOST, math.max(0, total + tonumber(diff)))
    redis.call('SET', KEYS[i], string.format('%.0f', total), 'PX', life)
  end
  totals[i - 1] = total
end
return totals
