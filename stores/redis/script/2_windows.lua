-- What fixed and sliding windows share. State: t the window's start, a its
-- hits, b those of the window before; t is nil if there is none.
local function load_window(m, v, at, lengths)
  local t, a, b = unpack('<i7I4I4', v, at)
  if a > MOST or b > MOST then return false end
  if now < t + lengths * m.window then
    if t - now >= m.window then t, m.mended = anchor(m), true end
    m.t, m.a, m.b = t, a, b
  end
  return true
end

local function dump_window(m)
  return m.t and pack('<i7I4I4', m.t, m.a, m.b)
end

local function time_of_window(m) return m.t end

make[FIXED] = function()
  return {
    load = function(m, v, at) return load_window(m, v, at, 1) end,
    dump = dump_window,
    time = time_of_window,
    expiry = function(m) return m.t + m.window end,
    left = function(m) return m.quota - (m.t and m.a or 0) end,
    wait = function(m, cost)
      if not m.t or m.a + cost <= m.quota then return 0 end
      return m.t + m.window - now
    end,
    charge = function(m, cost)
      if not m.t then m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = m.a + cost
    end,
    refund = function(m, cost, at)
      if m.t and at >= m.t and at < m.t + m.window then m.a = math.max(0, m.a - cost) end
    end,
  }
end

-- The sliding window weighs the window before by the part of it that a window
-- ending now still covers: floor((a × window + b × (window − e)) / window) hits
-- count, with e = now − t, or 0 if t is ahead of now.
make[SLIDING] = function()
  -- turned returns the state with a window that has ended as the one before. A
  -- charge keeps it so; a refused request must not move windows on.
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
    expiry = function(m) return m.t + 2 * m.window end,
    left = function(m) return m.quota - used(m) end,
    wait = function(m, cost)
      if used(m) + cost <= m.quota then return 0 end
      local t, a, b = turned(m)
      local room, e = m.quota - cost, now - t
      -- Where this window's hits alone are too many, the cost fits some time
      -- in the next one, in which they are those of the window before.
      if a > room then return 2 * m.window - e - fits(m, room, a) end
      return m.window - e - fits(m, room - a, b)
    end,
    charge = function(m, cost)
      if m.t then m.t, m.a, m.b = turned(m) else m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = m.a + cost
    end,
    refund = function(m, cost, at)
      if not m.t then return end
      if at >= m.t and at < m.t + m.window then
        m.a = math.max(0, m.a - cost)
      elseif at < m.t and at >= m.t - m.window then
        m.b = math.max(0, m.b - cost)
      end
    end,
  }
end
