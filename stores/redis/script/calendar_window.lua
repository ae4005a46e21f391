-- Calendar window: the twin of internal/meter/calendar_window.go. In the day, week or
-- month of a time zone, which begins at t,
--   allowed ⇔ a + cost ≤ quota
-- The script knows no time zones: the caller tells it the edges of some windows, of
-- which the one of now is from opens to closes (see meters_of).
-- State: see cell.lua; b is the length of the window in seconds.
make[CALENDAR] = function()
  local function ends(m) return m.t + m.b * 1000000 end
  return {
    load = function(m, v, at)
      local t, a, b = unpack('<i7I4I4', v, at)
      -- Changes of the clock add less than 27 hours to a window.
      if a > MOST or b == 0 or b * 1000000 > m.window + 97200000000 then return false end
      if now >= t + b * 1000000 then return true end
      if t > now and m.opens and (t > m.closes or t - now >= m.closes - m.opens) then
        t, b, m.mended = m.opens, (m.closes - m.opens) / 1000000, true
      end
      m.t, m.a, m.b = t, a, b
      return true
    end,
    dump = dump_window,
    time = time_of_window,
    left = function(m) return m.quota - (m.t and m.a or 0) end,
    charge = function(m, cost)
      if not m.t then m.t, m.a, m.b = m.opens, 0, (m.closes - m.opens) / 1000000 end
      m.a = add_count(m.a, cost)
    end,
    wait = function(m, cost)
      if not m.t or m.a + cost <= m.quota then return 0 end
      return ends(m) - now
    end,
    refund = function(m, cost, at)
      if m.t and at >= m.t and at < ends(m) then m.a = max(0, m.a - cost) end
    end,
    grant = grant_window,
    expiry = ends,
  }
end
