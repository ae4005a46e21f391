-- Fixed window. In a window [t, t + window),
--   allowed ⇔ a + cost ≤ quota
-- Source: "Fixed window" of
-- https://limits.readthedocs.io/en/stable/strategies.html
-- State: t the window's start, nil if there is none, a its hits, and b, a 0.
--[none]
m.t, m.a, m.b = nil, 0, 0
--[load]
good = after == at + 15
if good then
  local t, a, b = unpack('<i7I4I4', v, at)
  good = a <= MOST and b <= MOST
  if t - now >= m.window then t, m.ahead = m.aligned and now - now % m.window or now, true end
  if now < t + m.window then m.t, m.a, m.b = t, a, b else m.t, m.a, m.b = nil, 0, 0 end
end
--[left]
left = m.quota - m.a
--[charge]
m.t = m.t or (m.aligned and now - now % m.window or now)
m.a = min(m.a + cost, MOST)
--[refund]
if m.t and at >= m.t and at < m.t + m.window then m.a = max(0, m.a - cost) end
--[grant]
m.a = max(0, m.a - n)
--[dump]
if m.t then state, expiry = pack('<i7I4I4', m.t, m.a, m.b), m.t + m.window end
