-- Lockout: the twin of internal/meter/lockout.go, a fixed window that ends with a
-- wait when its quota has been used up. Each wait is longer than the one before:
--   wait after n others = min(first × factor^n, longest)
-- Source: "exponential lockout" of
-- https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html
-- State: t the window's start and a its hits, 0 if there is none; b the strikes,
-- the waits not forgotten when the last one began, that one included; u the end
-- of that wait, from which strikes decay.
make[LOCKOUT] = function()
  -- length returns how long the wait after n others is.
  local function length(m, n)
    local d = m.first
    if m.factor == 1 then return d end
    for _ = 1, n do
      if d > floor(m.longest / m.factor) then return m.longest end
      d = d * m.factor
    end
    return math.min(d, m.longest)
  end
  -- levels returns from how many strikes on the wait is the longest.
  local function levels(m)
    local n = 1
    while m.factor > 1 and length(m, n - 1) < m.longest do n = n + 1 end
    return n
  end
  local function strikes(m, at)
    if at <= m.u then return m.b end
    return m.b - math.min(m.b, floor((at - m.u) / m.decay))
  end
  -- A wait is under way unless a window has begun since.
  local function locked(m) return m.u and max(now, m.t) < m.u end
  return {
    load = function(m, v, at)
      local t, a, b, u = unpack('<i7I4I4i7', v, at)
      if a > MOST or b > 64 then return false end
      local longest = length(m, max(b, 1) - 1)
      if t - now >= m.window or u - now >= longest + m.window then
        t, u, m.mended = math.min(t, now), math.min(u, now + longest), true
      end
      m.t, m.a, m.b, m.u = t, a, b, u
      local at = max(now, t)
      if at < u then return true end
      if t < u or at >= t + m.window then m.t, m.a = 0, 0 end
      if strikes(m, at) == 0 then m.b, m.u = 0, 0 end
      return true
    end,
    dump = function(m)
      if not m.t or m.t == 0 and m.a == 0 and m.b == 0 and m.u == 0 then return nil end
      return pack('<i7I4I4i7', m.t, m.a, m.b, m.u)
    end,
    time = function(m) return m.t ~= 0 and m.t or nil end,
    left = function(m)
      if locked(m) then return 0 end
      return m.quota - (m.a or 0)
    end,
    charge = function(m, cost)
      if locked(m) then return end -- a wait counts nothing
      if not m.t then m.t, m.a, m.b, m.u = 0, 0, 0, 0 end
      local at = max(now, m.t)
      if m.t == 0 and m.a == 0 then m.t = at end
      m.a = add_count(m.a, cost)
      if m.a >= m.quota then
        local before = strikes(m, at)
        m.u, m.b = at + length(m, before), math.min(before + 1, levels(m))
      end
    end,
    wait = function(m, cost)
      if locked(m) then return m.u - now end
      if (m.a or 0) + cost <= m.quota then return 0 end
      return m.t + m.window - now
    end,
    refund = function(m, cost, at)
      if not m.t or m.a == 0 or at < m.t or at >= m.t + m.window then return end
      m.a = max(0, m.a - cost)
      if locked(m) and m.a < m.quota then -- the wait ends, and its strike is taken back
        m.b, m.u = max(0, m.b - 1), 0
        if m.b > 0 then m.u = m.t end
      end
    end,
    expiry = function(m)
      local last = m.u + m.b * m.decay
      if m.t ~= 0 or m.a ~= 0 then last = max(last, m.t + m.window) end
      return last
    end,
  }
end
