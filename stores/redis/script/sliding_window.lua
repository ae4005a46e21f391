-- Sliding window. With e = now − t, 0 if t is ahead of now,
--   allowed ⇔ floor((a × window + b × (window − e)) / window) + cost ≤ quota
-- Source: "Sliding window counter" of
-- https://limits.readthedocs.io/en/stable/strategies.html
-- State: t the window's start, nil if there is none, a its hits, b those of the window
-- before. From its end on, a window is the one before. A charge keeps it so; a denied
-- request must not move windows on.
--[none]
m.t, m.a, m.b = nil, 0, 0
--[load]
good = after == at + 15
if good then
  local t, a, b = unpack('<i7I4I4', v, at)
  good = a <= MOST and b <= MOST
  if t - now >= m.window then t, m.ahead = m.aligned and now - now % m.window or now, true end
  if now < t + 2 * m.window then m.t, m.a, m.b = t, a, b else m.t, m.a, m.b = nil, 0, 0 end
end
--[left]
left = m.quota - m.a
if m.t and now >= m.t + m.window then
  left = m.quota - muldiv(m.t + 2 * m.window - now, m.a, m.window)
elseif m.b > 0 then
  left = left - muldiv(min(m.t + m.window - now, m.window), m.b, m.window)
end
--[charge]
if not m.t then
  m.t = m.aligned and now - now % m.window or now
elseif now >= m.t + m.window then
  m.t, m.a, m.b = m.t + m.window, 0, m.a
end
m.a = min(m.a + cost, MOST)
--[refund]
if m.t and at >= m.t and at < m.t + m.window then
  m.a = max(0, m.a - cost)
elseif m.t and at < m.t and at >= m.t - m.window then
  m.b = max(0, m.b - cost)
end
--[grant]
if m.t then
  local ended = now >= m.t + m.window
  local t, a, b = m.t, m.a, m.b
  if ended then t, a, b = m.t + m.window, 0, m.a end
  local newest, length = min(n, a), min(t + m.window - now, m.window)
  local share = muldiv(length, b, m.window)
  if share > 0 and n > newest then
    -- The most hits whose share is no more: floor(((room + 1) × window − 1) / length).
    local most, rest = muldiv(m.window, max(0, share - (n - newest)) + 1, length)
    b = rest == 0 and most - 1 or most
  end
  if ended then m.a = b else m.a, m.b = a - newest, b end
end
--[dump]
if m.t then state, expiry = pack('<i7I4I4', m.t, m.a, m.b), m.t + 2 * m.window end
