local function wait(m, cost)
  if cost == 0 then return 0 end
  if cost > m.capacity or m.quota == 0 then return -1 end
  return m.algorithm.wait(m, cost)
end

local reply = { ARGV[1], pack('<i8', now) }

if verb == 'reset' then
  redis.call('DEL', unpack_list(KEYS))
  return table.concat(reply)
end

local giving = verb == 'back' or verb == 'refund'
local items, admitted, arg = {}, true, 5
for i = 1, #KEYS do
  local key = KEYS[i]
  local spec, cost = ARGV[arg], tonumber(ARGV[arg + 1])
  arg = arg + 2
  local meters, stored = read(key, spec)
  if not meters then return stored end
  if giving then
    local at = tonumber(ARGV[arg])
    for j = 1, #meters do
      local m = meters[j]
      if m.quota > 0 then m.algorithm.refund(m, cost, at, tonumber(ARGV[arg + j])) end
    end
    arg = arg + 1 + #meters
  end
  for j = 1, #meters do
    local m = meters[j]
    m.waits = wait(m, cost)
    admitted = admitted and m.waits == 0
  end
  items[i] = { key = key, cost = cost, meters = meters, stored = stored }
end

local written = false
for i = 1, #items do
  local item = items[i]
  local charged, mended = verb == 'take' and admitted and item.cost > 0, false
  for j = 1, #item.meters do
    local m = item.meters[j]
    if charged then m.algorithm.charge(m, item.cost) end
    mended = mended or m.mended
  end
  if charged or item.stored and (mended or giving) then
    local err = write(item.key, item.meters)
    if err and written then
      return redis.error_reply('FLOODGATE some of several keys have been written: ' .. err.err)
    elseif err then
      return err
    end
    written = true
  elseif item.stored then
    heal(item.key, item.meters)
  end
  if verb ~= 'refund' then
    for j = 1, #item.meters do
      local m = item.meters[j]
      local left, reset, more = 0, 0, 0
      if m.quota > 0 then
        left, reset = math.max(0, m.algorithm.left(m)), m.algorithm.wait(m, m.capacity)
        if left + 1 == m.capacity then
          more = reset
        elseif left < m.capacity then
          more = m.algorithm.wait(m, left + 1)
        end
      end
      reply[#reply + 1] = pack('<i8i8i8i8', left, reset, more, m.waits)
    end
  end
end
return table.concat(reply)
