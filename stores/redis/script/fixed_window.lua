-- Fixed window: the twin of internal/meter/fixed_window.go. In a window
-- [t, t + window),
--   allowed ⇔ a + cost ≤ quota
-- Source: "Fixed window" of
-- https://limits.readthedocs.io/en/stable/strategies.html
-- State: see cell.lua; b is 0.
make[FIXED] = function()
  return {
    load = function(m, v, at) return load_window(m, v, at, 1) end,
    dump = dump_window,
    time = time_of_window,
    left = function(m) return m.quota - (m.t and m.a or 0) end,
    charge = function(m, cost)
      if not m.t then m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = add_count(m.a, cost)
    end,
    wait = function(m, cost)
      if not m.t or m.a + cost <= m.quota then return 0 end
      return m.t + m.window - now
    end,
    refund = function(m, cost, at)
      if m.t and at >= m.t and at < m.t + m.window then m.a = math.max(0, m.a - cost) end
    end,
    grant = grant_window,
    expiry = function(m) return m.t + m.window end,
  }
end
