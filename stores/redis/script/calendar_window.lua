-- Calendar window. In the day, week or month of a time zone, which begins at t,
--   allowed ⇔ a + cost ≤ quota
-- The script knows no time zones: x and y are the edges of one window. If it needs
-- those of another one, the decision fails with the server's time and changes nothing, and
-- the caller asks again with the edges of the window that this time is in.
-- State: t the window's start, nil if there is none, a its hits, b its length in seconds.
--[none]
a, b = 0, 0
x, y = unpack('<i8i8', rule, limit + NUMBERS)
--[load]
good = bytes == 15
if good then
  t, a, b = unpack('<i7I4I4', v, state)
  -- Changes of the clock add less than 27 hours to a window.
  good = a <= MOST and b > 0 and b * 1000000 <= window + 97200000000
  if t > now then
    if now < x or now >= y then err = string.format('FLOODGATE edges %.0f', now) end
    if t > y or t - now >= y - x then t, b, moved = x, (y - x) / 1000000, true end
  end
  if now >= t + b * 1000000 then t, a, b = nil, 0, 0 end
end
--[left]
left = quota - a
--[charge]
if not t then
  if now < x or now >= y then err = string.format('FLOODGATE edges %.0f', now) end
  t, b = x, (y - x) / 1000000
end
a = min(a + cost, MOST)
--[refund]
if t and at >= t and at < t + b * 1000000 then a = max(0, a - cost) end
--[grant]
a = max(0, a - given)
--[dump]
if t then
  expiry = t + b * 1000000
  record = pack('<I3i7I7I6i7I4I4', 35, expiry, identity, precision, t, a, b)
end
--[answer]
answer = record or string.rep('\0', 38)
