-- Sliding window. With e = now − t, 0 if t is ahead of now,
--   allowed ⇔ floor((a × window + b × (window − e)) / window) + cost ≤ quota
-- State: t the window's start, nil if there is none, a its hits, b those of the window before. A
-- window that has ended stays until a charge: otherwise a clock that steps back would show it.
--[load]
good = bytes == 15
if good then
  t, a, b = unpack('<i7I4I4', v, state)
  good = a <= MOST and b <= MOST
  if t - now >= window then t, moved = start, true end
  if now >= t + 2 * window then t, a, b = nil, 0, 0 end
end
--[left]
left = quota - a
if t and now >= t + window then
  left = quota - muldiv(t + 2 * window - now, a, window)
elseif b > 0 then
  left = left - muldiv(min(t + window - now, window), b, window)
end
--[charge]
if not t then
  t = start
elseif now >= t + window then
  t, a, b = t + window, 0, a
end
a = min(a + cost, MOST)
--[refund]
if t and at >= t and at < t + window then
  a = max(0, a - cost)
elseif t and at < t and at >= t - window then
  b = max(0, b - cost)
end
--[grant]
if t then
  local ended = now >= t + window
  local begun, new, old = t, a, b
  if ended then begun, new, old = t + window, 0, a end
  local newest, length = min(given, new), min(begun + window - now, window)
  local share = muldiv(length, old, window)
  if share > 0 and given > newest then
    -- The most hits whose share is no more: floor(((room + 1) × window − 1) / length).
    local most, rest = muldiv(window, max(0, share - (given - newest)) + 1, length)
    old = rest == 0 and most - 1 or most
  end
  if ended then a = old else a, b = new - newest, old end
end
--[dump]
if t then
  expiry = t + 2 * window
  record = pack('<I3i7I7i7I4I4', 29, expiry, identity, t, a, b)
end
