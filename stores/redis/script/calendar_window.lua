-- Calendar window. In the day, week or month of a time zone, which begins at t,
--   allowed ⇔ a + cost ≤ quota
-- The script knows no time zones: m.x and m.y are the edges of one window. If it needs
-- those of another one, the decision fails with the server's time and changes nothing, and
-- the caller asks again with the edges of the window that this time is in.
-- State: t the window's start, nil if there is none, a its hits, b its length in seconds.
--[none]
m.t, m.a, m.b = nil, 0, 0
--[load]
good = after == at + 15
if good then
  local t, a, b = unpack('<i7I4I4', v, at)
  -- Changes of the clock add less than 27 hours to a window.
  good = a <= MOST and b > 0 and b * 1000000 <= m.window + 97200000000
  if t > now then
    if now < m.x or now >= m.y then err = string.format('FLOODGATE edges %.0f', now) end
    if t > m.y or t - now >= m.y - m.x then t, b, m.ahead = m.x, (m.y - m.x) / 1000000, true end
  end
  if now < t + b * 1000000 then m.t, m.a, m.b = t, a, b else m.t, m.a, m.b = nil, 0, 0 end
end
--[left]
left = m.quota - m.a
--[charge]
if not m.t then
  if now < m.x or now >= m.y then err = string.format('FLOODGATE edges %.0f', now) end
  m.t, m.b = m.x, (m.y - m.x) / 1000000
end
m.a = min(m.a + cost, MOST)
--[refund]
if m.t and at >= m.t and at < m.t + m.b * 1000000 then m.a = max(0, m.a - cost) end
--[grant]
m.a = max(0, m.a - n)
--[dump]
if m.t then state, expiry = pack('<i7I4I4', m.t, m.a, m.b), m.t + m.b * 1000000 end
