-- Calendar window. In the day, week or month of a time zone, which begins at t,
--   allowed ⇔ a + cost ≤ quota
-- The script knows no time zones: the caller sends the window of its own time, the one before and
-- the one after.
-- State: t the window's start, nil if there is none, a its hits, b its length in seconds.
--[none]
local before, this, after -- seconds
x, before, this, after = unpack('<i8I4I4I4', rule, limit + NUMBERS)
y = x + before * 1000000
if now >= y then x, y = y, y + this * 1000000 end
if now >= y then x, y = y, y + after * 1000000 end
if now < x or now >= y then err = 'FLOODGATE calendar: the clocks of the caller and the server differ by a window' end
--[load]
good = bytes == 15
if good then
  t, a, b = unpack('<i7I4I4', v, state)
  -- Changes of the clock add less than 27 hours to a window.
  good = a <= MOST and b > 0 and b * 1000000 <= window + 97200000000
  if t > y or t - now >= y - x then t, b, moved = x, (y - x) / 1000000, true end
  if now >= t + b * 1000000 then t, a, b = nil, 0, 0 end
end
--[left]
left = quota - a
--[charge]
if not t then t, b = x, (y - x) / 1000000 end
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
