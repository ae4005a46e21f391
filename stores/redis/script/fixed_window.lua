-- Fixed window. In a window [t, t + window),
--   allowed ⇔ a + cost ≤ quota
-- State: t the window's start, nil if there is none, a its hits, and b, a 0.
--[load]
good = bytes == 15
if good then
  t, a, b = unpack('<i7I4I4', v, state)
  good = a <= MOST and b <= MOST
  if t - now >= window then t, moved = start, true end
  if now >= t + window then t, a, b = nil, 0, 0 end
end
--[left]
left = quota - a
--[charge]
t = t or start
a = min(a + cost, MOST)
--[refund]
if t and at >= t and at < t + window then a = max(0, a - cost) end
--[grant]
a = max(0, a - given)
--[dump]
if t then
  expiry = t + window
  record = pack('<I3i7I7i7I4I4', 29, expiry, identity, t, a, b)
end
