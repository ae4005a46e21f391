local function wait(m, cost)
  if cost == 0 then return 0 end
  if cost > m.capacity or m.quota == 0 then return -1 end
  return m.algorithm.wait(m, cost)
end

if verb == 'reset' then
  redis.call('DEL', unpack_list(KEYS))
  return ARGV[1]
end

local giving = verb == 'back' or verb == 'refund'
local items, admitted, arg = {}, true, 5
for i = 1, #KEYS do
  local spec, cost = ARGV[arg], tonumber(ARGV[arg + 1])
  arg = arg + 2
  local item, err = read(KEYS[i], spec)
  if not item then return err end
  local meters = item.meters
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
    if item.used_up and cost > 0 and m.waits >= 0 then m.waits = max(m.waits, item.used_up - now) end
    admitted = admitted and m.waits == 0
    local t = m.algorithm.time(m)
    if t and t > item.at then item.at = t end
  end
  item.cost = cost
  items[i] = item
end

local written, reply = false, { ARGV[1] }
for i = 1, #items do
  local item = items[i]
  local charged = verb == 'take' and admitted and item.cost > 0
  local mended = item.mark and item.cost > 0 and not giving
  for j = 1, #item.meters do
    local m = item.meters[j]
    if charged then m.algorithm.charge(m, item.cost) end
    mended = mended or m.mended
  end
  if charged or mended or giving and item.stored and not item.unreadable then
    local err = write(item)
    if err and written then
      return redis.error_reply('FLOODGATE some of several keys have been written: ' .. err.err)
    elseif err then
      return err
    end
    written = true
  elseif item.stored and not item.newer then
    heal(item)
  end
  if verb ~= 'refund' then
    reply[#reply + 1] = pack('<i8', item.at)
    for j = 1, #item.meters do
      local m = item.meters[j]
      local left, reset, more = 0, 0, 0
      if m.quota > 0 then
        left, reset = max(0, m.algorithm.left(m)), m.algorithm.wait(m, m.capacity)
        if left + 1 == m.capacity then
          more = reset
        elseif left < m.capacity then
          more = m.algorithm.wait(m, left + 1)
        end
      end
      if item.used_up then
        local ends = item.used_up - now
        left, reset, more = 0, max(reset, ends), max(more, ends)
      end
      reply[#reply + 1] = pack('<i8i8i8i8', left, reset, more, m.waits)
    end
  end
end
if unreadable then reply[#reply + 1] = '\1' end
return table.concat(reply)
