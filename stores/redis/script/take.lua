local function wait(m, cost)
  if cost == 0 or m.unlimited then return 0 end
  if cost > m.capacity or m.quota == 0 then return -1 end
  return m.algorithm.wait(m, cost)
end

local NEWER = ': the stored value has the format of a later version, which this one does not replace'

-- block denies keys for the times that stand in place of their costs.
local function block(size, p)
  local some = ''
  for i = 1, size do
    local place, length
    place, length, p = unpack('<I4i8', input, p)
    local item, err = read(KEYS[first_key + i - 1], ARGV[place])
    if not item then return nil, some .. err end
    if item.newer then return nil, some .. 'FLOODGATE newer: ' .. item.key .. NEWER end
    local others = {}
    for j = 1, #item.foreign do
      if not item.foreign[j][3] then others[#others + 1] = item.foreign[j] end
    end
    if length > 0 then others[#others + 1] = used_up(length) end
    item.foreign = others
    if length > 0 or item.stored then
      err = write(item)
      if err then return nil, some .. err end
      some = SOME_WRITTEN
    end
  end
  return '\0'
end

local NO_LEASE = rep('\0', 8)

-- lease_of reads the lease of an item, if its rule counts leases.
local function lease_of(item, p)
  local m = item.meters.in_flight
  if not m then return p end
  local lease = sub(input, p, p + 7)
  m.lease = lease ~= NO_LEASE and lease or nil
  return p + 8
end

-- lease ends or renews leases: those of a key one after the other, and then the key is
-- written once.
local function lease(renewing, size, p)
  local items, by_key = {}, {}
  for i = 1, size do
    local place, cost
    place, cost, p = unpack('<I4i8', input, p)
    local key = KEYS[first_key + i - 1]
    local item, err = by_key[key], nil
    if not item then
      item, err = read(key, ARGV[place])
      if not item then return nil, err end
      items[#items + 1], by_key[key] = item, item
    end
    p = lease_of(item, p)
    local m = item.meters.in_flight
    -- A value that denies its key stays as it is.
    if m and m.lease and not item.newer and not item.mark then
      if renewing then
        if cost > 0 then m.algorithm.renew(m, m.lease, cost) end
        item.changed = item.changed or cost > 0
      else
        item.changed = m.algorithm.release(m, m.lease) or item.changed
      end
    end
  end
  local some = ''
  for i = 1, #items do
    if items[i].changed then
      local err = write(items[i])
      if err then return nil, some .. err end
      some = SOME_WRITTEN
    end
  end
  return '\0'
end

-- make_decision makes a decision of any kind. It returns the reply; nil and an
-- error's text if it fails.
local function make_decision(verb, size, p)
  local last_key = first_key + size - 1
  if verb == RESET then
    local err
    for from = first_key, last_key, 1000 do -- a function takes some thousands of arguments at most
      err = err or error_of(pcall_redis('DEL', unpack_list(KEYS, from, math.min(from + 999, last_key))))
    end
    return not err and '\0' or nil, err
  end
  if verb == BLOCK then return block(size, p) end
  if verb == RELEASE or verb == RENEW then return lease(verb == RENEW, size, p) end
  unreadable = false
  local granting, charging = verb == GRANT, verb == CHARGE
  local giving = verb == BACK or verb == REFUND or granting
  local items, admitted, ahead = {}, true, 0
  for i = 1, size do
    local place, cost
    place, cost, p = unpack('<I4i8', input, p)
    local item, err = read(KEYS[first_key + i - 1], ARGV[place])
    if not item then return nil, err end
    p = lease_of(item, p)
    if item.newer and (charging or granting) and cost > 0 then
      return nil, 'FLOODGATE newer: ' .. item.key .. NEWER
    end
    local meters = item.meters
    for j = 1, giving and 0 or #meters do
      if meters[j].number == CALENDAR and not meters[j].opens then
        return nil, string.format('FLOODGATE edges %.0f', now)
      end
    end
    if granting then
      for j = 1, #meters do
        local m = meters[j]
        if m.algorithm.grant and cost > 0 then m.algorithm.grant(m, math.min(cost, MOST)) end
      end
      cost = 0 -- the reply is that of a look
    elseif giving then
      local at, reset
      at, p = unpack('<i8', input, p)
      for j = 1, #meters do
        local m = meters[j]
        reset, p = unpack('<i8', input, p)
        if cost > 0 then m.algorithm.refund(m, cost, at, reset) end
      end
    end
    for j = 1, #meters do
      local m = meters[j]
      if m.mended then ahead = 8 end
      m.waits = charging and 0 or wait(m, cost)
      if item.used_up and cost > 0 and not charging and m.waits >= 0 then m.waits = max(m.waits, item.used_up - now) end
      admitted = admitted and m.waits == 0
      local t = m.algorithm.time(m)
      if t and t > item.at then item.at = t end
    end
    item.cost = cost
    items[i] = item
  end

  local written, reply = false, { string.char((unreadable and 1 or 0) + (admitted and 0 or 4) + ahead) }
  for i = 1, #items do
    local item, err = items[i], nil
    local charged = (charging or verb == TAKE and admitted) and item.cost > 0
    local mended = item.mark and item.cost > 0 and not giving
    for j = 1, #item.meters do
      local m = item.meters[j]
      if charged then m.algorithm.charge(m, math.min(item.cost, MOST)) end
      mended = mended or m.mended
    end
    if charged or mended or giving and item.stored and not item.unreadable then
      err = write(item)
      if err and written then return nil, SOME_WRITTEN .. err end
      written = true
    elseif item.stored and not item.newer then
      err = heal(item)
      if err and written then return nil, SOME_WRITTEN .. err end
    end
    if err then return nil, err end
    if verb ~= REFUND then
      reply[#reply + 1] = pack('<i8', item.at)
      for j = 1, #item.meters do
        local m = item.meters[j]
        local left, reset, more = 0, 0, 0
        if m.quota > 0 then
          left, reset = max(0, m.algorithm.left(m)), m.number ~= IN_FLIGHT and m.algorithm.wait(m, m.capacity) or 0
          if left + 1 == m.capacity or m.number == IN_FLIGHT then
            more = reset
          elseif left < m.capacity then
            more = m.algorithm.wait(m, left + 1)
          end
        end
        if item.used_up then
          local ends = item.used_up - now
          left, reset, more = 0, max(reset, ends), max(more, ends)
        end
        reply[#reply + 1] = pack(admitted and '<I4i7i7' or '<I4i7i7i7', left, reset, more, m.waits)
      end
    end
  end
  return table.concat(reply)
end

-- An error of the script itself fails its decision, and no other.
return function(at, key, verb, items, p)
  now, first_key = at, key
  local ran, reply, err = pcall(make_decision, verb, items, p)
  if not ran then err = 'FLOODGATE ' .. (error_of(reply) or tostring(reply)) end
  return err and pack('<I1I4', 2, #err) .. err or reply
end
