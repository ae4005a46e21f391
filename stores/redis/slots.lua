-- The slots of package inflight. The value of a key is a sorted set: a member for each slot that is
-- held, whose score is the time in milliseconds at which it ends, by the server's clock.
-- ARGV: the verb, the lease in milliseconds, for acquire the most slots, and a slot for each of KEYS.
local verb, lease = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function hold(key, slot)
  redis.call('ZADD', key, string.format('%.0f', now + lease), slot)
  if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
end

if verb == 'acquire' then
  local key, most, slot = KEYS[1], tonumber(ARGV[3]), ARGV[4]
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))
  local held = redis.call('ZCARD', key)
  if redis.call('ZSCORE', key, slot) then return slot .. ' ' .. held end -- the client has repeated the command
  if held >= most then return slot .. ' -1' end
  hold(key, slot)
  return slot .. ' ' .. held + 1
end
for i, key in ipairs(KEYS) do
  if verb == 'renew' then hold(key, ARGV[3 + i]) else redis.call('ZREM', key, ARGV[3 + i]) end
end
return 'OK'
