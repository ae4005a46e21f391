-- Leases: the twin of internal/meter/in_flight.go. They admit what is under way:
--   allowed ⇔ the costs of the leases that have not ended, + cost ≤ quota
-- State: n how many, then each: the lease (8 bytes), its end (7) and its cost (4),
-- from position from of the string src on; used is the sum of the costs, and last the
-- latest end. m.lease is the lease that the item gets or gives back, nil for none.
make[IN_FLIGHT] = function()
  local SIZE, MOST_LEASES = 19, 40000
  local function part(m, i, j) return sub(m.src, m.from + SIZE * (i - 1), m.from + SIZE * j - 1) end
  -- find returns which of the leases this one is, nil if it is none of them.
  local function find(m, lease)
    if (m.n or 0) == 0 then return nil end
    local at = string.find(m.src, lease, m.from, true)
    while at and at < m.from + SIZE * m.n do
      if (at - m.from) % SIZE == 0 then return (at - m.from) / SIZE + 1 end
      at = string.find(m.src, lease, at + 1, true)
    end
  end
  local function put(m, i, lease, ends, cost)
    local before, after = '', ''
    if (m.n or 0) > 0 then before, after = part(m, 1, i - 1), part(m, i + 1, m.n) end
    m.src, m.from, m.n = before .. pack('<c8i7I4', lease, ends, cost) .. after, 1, max(m.n or 0, i)
    m.last = max(m.last or ends, ends)
  end
  -- renew makes a lease end a window from now, and adds it if it is not there.
  local function renew(m, lease, cost)
    local i = find(m, lease)
    if i then
      local ends, had = unpack('<i7I4', m.src, m.from + SIZE * (i - 1) + 8)
      put(m, i, lease, max(ends, now + m.window), had)
    elseif (m.n or 0) < MOST_LEASES then
      put(m, (m.n or 0) + 1, lease, now + m.window, math.min(cost, MOST))
      m.used = (m.used or 0) + cost
    end
  end
  -- release ends a lease, and returns whether it was there.
  local function release(m, lease)
    local i = find(m, lease)
    if not i then return false end
    local _, cost = unpack('<i7I4', m.src, m.from + SIZE * (i - 1) + 8)
    m.src, m.from, m.n, m.used = part(m, 1, i - 1) .. part(m, i + 1, m.n), 1, m.n - 1, m.used - cost
    m.last = nil
    for j = 1, m.n do
      local ends = unpack('<i7', m.src, SIZE * (j - 1) + 9)
      m.last = max(m.last or ends, ends)
    end
    return true
  end
  return {
    load = function(m, v, at)
      local n, p, changed, used, last = unpack('<I2', v, at), at + 2, false, 0, nil
      for i = 0, n - 1 do
        local ends, cost = unpack('<i7I4', v, p + SIZE * i + 8)
        if cost == 0 or cost > MOST then return false end
        if ends <= now then
          changed = true
        else
          if ends - now >= 2 * m.window then ends, changed, m.mended = now + m.window, true, true end
          used, last = used + cost, max(last or ends, ends)
        end
      end
      m.n, m.src, m.from, m.used, m.last = n, v, p, used, last
      if not changed then return true end
      local live = {}
      for i = 0, n - 1 do
        local lease, ends, cost = unpack('<c8i7I4', v, p + SIZE * i)
        if ends > now then
          if ends - now >= 2 * m.window then ends = now + m.window end
          live[#live + 1] = pack('<c8i7I4', lease, ends, cost)
        end
      end
      m.n, m.src, m.from = #live, table.concat(live), 1
      return true
    end,
    dump = function(m)
      if (m.n or 0) == 0 then return nil end
      return pack('<I2', m.n) .. part(m, 1, m.n)
    end,
    time = function() return nil end,
    left = function(m) return m.quota - (m.used or 0) end,
    -- Only a take has a lease: a charge leaves leases alone, as a refund does.
    charge = function(m, cost) if m.lease then renew(m, m.lease, cost) end end,
    -- Nobody knows when a lease will be released.
    wait = function(m, cost) return (m.used or 0) + cost <= m.quota and 0 or 1000000 end,
    refund = function(m) if m.lease then release(m, m.lease) end end,
    expiry = function(m) return m.last end,
    renew = renew,
    release = release,
  }
end
