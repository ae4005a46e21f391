-- Lockout: a fixed window that ends with a wait when its quota has been used up:
--   wait after n others = min(first × factor^n, longest)
-- State, in the table m: t the window's start and a its hits, both 0 if there is none; u the end of
-- the last wait; b the strikes, which are that wait and those not forgotten when it began.
local function wait_after(m, n)
  local d = m.first
  for _ = 1, m.factor > 1 and n or 0 do
    if d > floor(m.longest / m.factor) then return m.longest end
    d = d * m.factor
  end
  return min(d, m.longest)
end
-- strikes returns how many strikes are left: one is forgotten for each decay since the last wait's end.
local function strikes(m, at) return at <= m.u and m.b or m.b - min(m.b, floor((at - m.u) / m.decay)) end
-- A wait is under way unless a window has begun since.
local function locked(m, now) return max(now, m.t) < m.u end
--[none]
m = { first = precision, t = 0, a = 0, b = 0, u = 0, factor = nil, longest = nil, decay = nil }
m.factor, m.longest, m.decay = unpack('<i8i8i8', rule, limit + NUMBERS)
--[load]
good = bytes == 22
if good then
  m.t, m.a, m.b, m.u = unpack('<i7I4I4i7', v, state)
  good = m.t > -9007199254740992 and m.a <= MOST and m.b <= 64
  local longest = good and wait_after(m, max(m.b, 1) - 1) or 0
  if m.t - now >= window or m.u - now >= longest + window then
    m.t, m.u, moved = min(m.t, now), min(m.u, now + longest), true
  end
  if good and not locked(m, now) then
    local latest = max(now, m.t)
    if m.t < m.u or latest >= m.t + window then m.t, m.a = 0, 0 end
    if strikes(m, latest) == 0 then m.b, m.u = 0, 0 end
  end
end
--[left]
left = locked(m, now) and 0 or quota - m.a
--[charge]
if not locked(m, now) then -- a wait counts nothing
  local start = max(now, m.t)
  if m.t == 0 and m.a == 0 then m.t = start end
  m.a = min(m.a + cost, MOST)
  if m.a >= quota then
    local before, levels = strikes(m, start), 1 -- from so many strikes on the wait is the longest
    while m.factor > 1 and wait_after(m, levels - 1) < m.longest do levels = levels + 1 end
    m.u, m.b = start + wait_after(m, before), min(before + 1, levels)
  end
end
--[refund]
if m.a > 0 and at >= m.t and at < m.t + window then
  m.a = max(0, m.a - cost)
  if locked(m, now) and m.a < quota then -- the wait ends, and its strike is taken back
    m.b = max(0, m.b - 1)
    m.u = m.b > 0 and m.t or 0
  end
end
--[dump]
if m.t ~= 0 or m.a ~= 0 or m.b ~= 0 or m.u ~= 0 then
  expiry = m.u + m.b * m.decay
  if m.t ~= 0 or m.a ~= 0 then expiry = max(expiry, m.t + window) end
  record = pack('<I3i7I7i7I4I4i7', 36, expiry, identity, m.t, m.a, m.b, m.u)
end
--[answer]
answer = pack('<i7I4I4i7', m.t, m.a, m.b, m.u)
