-- Sliding window: the twin of internal/meter/sliding_window.go. With e = now − t,
-- 0 if t is ahead of now,
--   allowed ⇔ floor((a × window + b × (window − e)) / window) + cost ≤ quota
-- Source: "Sliding window counter" of
-- https://limits.readthedocs.io/en/stable/strategies.html
-- State: see cell.lua.
make[SLIDING] = function()
  -- turned returns the state with a window that has ended as the previous one. A
  -- charge keeps it so. A denied request must not move windows on.
  local function turned(m)
    if not m.t then return now, 0, 0 end
    if now >= m.t + m.window then return m.t + m.window, 0, m.a end
    return m.t, m.a, m.b
  end
  local function used(m)
    local t, a, b = turned(m)
    if b == 0 then return a end
    return a + muldiv(m.window - max(0, now - t), b, m.window)
  end
  -- fits returns the largest part of a window for which count, weighted by it,
  -- is not above room: floor(((room + 1) × window − 1) / count).
  local function fits(m, room, count)
    local q, r = muldiv(m.window, room + 1, count)
    if r == 0 then return q - 1 end
    return q
  end
  return {
    load = function(m, v, at) return load_window(m, v, at, 2) end,
    dump = dump_window,
    time = time_of_window,
    left = function(m) return m.quota - used(m) end,
    charge = function(m, cost)
      if m.t then m.t, m.a, m.b = turned(m) else m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = add_count(m.a, cost)
    end,
    wait = function(m, cost)
      if used(m) + cost <= m.quota then return 0 end
      local t, a, b = turned(m)
      local room, e = m.quota - cost, now - t
      -- If this window's hits alone are too many, the cost fits some time in the
      -- next window, in which they are the previous window's.
      if a > room then return 2 * m.window - e - fits(m, room, a) end
      return m.window - e - fits(m, room - a, b)
    end,
    refund = function(m, cost, at)
      if not m.t then return end
      if at >= m.t and at < m.t + m.window then
        m.a = math.max(0, m.a - cost)
      elseif at < m.t and at >= m.t - m.window then
        m.b = math.max(0, m.b - cost)
      end
    end,
    grant = function(m, n)
      if not m.t then return end
      local t, a, b = turned(m)
      local newest, length = math.min(n, a), m.window - max(0, now - t)
      local share = muldiv(length, b, m.window)
      if share > 0 and n > newest then b = fits(m, max(0, share - (n - newest)), length) end
      if t > m.t then m.a = b else m.a, m.b = a - newest, b end
    end,
    expiry = function(m) return m.t + 2 * m.window end,
  }
end
