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

local sequence = tonumber(ARGV[1])
local fresh = true
if sequence > 0 then
  local last = tonumber(redis.pcall('GET', KEYS[1]) or 0)
  fresh = not last or sequence > last
  if fresh then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
end

local totals = {}
for i = 2, #KEYS do
  local diff, life = ARGV[2 * i - 1], ARGV[2 * i]
  local total
  if fresh and diff ~= '0' then
    total = redis.pcall('INCRBY', KEYS[i], diff)
    if type(total) == 'table' then -- somebody else's value: it counts as none
      redis.call('SET', KEYS[i], diff)
      total = tonumber(diff)
    end
    redis.call('PEXPIRE', KEYS[i], life)
  else
    total = redis.pcall('GET', KEYS[i])
    if type(total) == 'table' then total = 0 end
    total = tonumber(total or 0) or 0
  end
  totals[#totals + 1] = total
end
return totals
