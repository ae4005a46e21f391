-- Lockout: a fixed window that ends with a wait when its quota has been used up. Each
-- wait is longer than the one before:
--   wait after n others = min(first × factor^n, longest)
-- Source: "exponential lockout" of
-- https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html
-- State: t the window's start and a its hits, 0 if there is none; b the strikes,
-- the waits not forgotten when the last one began, that one included; u the end
-- of that wait, from which strikes decay.
-- m.precision is the first wait, m.x the factor, m.y the longest wait and m.z the decay.
-- wait_after returns how long the wait after n others is.
local function wait_after(m, n)
  local d = m.precision
  for _ = 1, m.x > 1 and n or 0 do
    if d > floor(m.y / m.x) then return m.y end
    d = d * m.x
  end
  return min(d, m.y)
end
local function strikes(m, at) return at <= m.u and m.b or m.b - min(m.b, floor((at - m.u) / m.z)) end
-- A wait is under way unless a window has begun since.
local function locked(m, now) return max(now, m.t) < m.u end
--[none]
m.t, m.a, m.b, m.u = 0, 0, 0, 0
--[load]
good = after == at + 22
if good then
  m.t, m.a, m.b, m.u = unpack('<i7I4I4i7', v, at)
  good = m.a <= MOST and m.b <= 64
  local longest = good and wait_after(m, max(m.b, 1) - 1) or 0
  if m.t - now >= m.window or m.u - now >= longest + m.window then
    m.t, m.u, m.ahead = min(m.t, now), min(m.u, now + longest), true
  end
  if good and not locked(m, now) then
    local latest = max(now, m.t)
    if m.t < m.u or latest >= m.t + m.window then m.t, m.a = 0, 0 end
    if strikes(m, latest) == 0 then m.b, m.u = 0, 0 end
  end
end
--[left]
left = locked(m, now) and 0 or m.quota - m.a
--[charge]
if not locked(m, now) then -- a wait counts nothing
  local start = max(now, m.t)
  if m.t == 0 and m.a == 0 then m.t = start end
  m.a = min(m.a + cost, MOST)
  if m.a >= m.quota then
    local before, levels = strikes(m, start), 1 -- from so many strikes on the wait is the longest
    while m.x > 1 and wait_after(m, levels - 1) < m.y do levels = levels + 1 end
    m.u, m.b = start + wait_after(m, before), min(before + 1, levels)
  end
end
--[refund]
if m.a > 0 and at >= m.t and at < m.t + m.window then
  m.a = max(0, m.a - cost)
  if locked(m, now) and m.a < m.quota then -- the wait ends, and its strike is taken back
    m.b, m.u = max(0, m.b - 1), 0
    if m.b > 0 then m.u = m.t end
  end
end
--[dump]
if m.t ~= 0 or m.a ~= 0 or m.b ~= 0 or m.u ~= 0 then
  state, expiry = pack('<i7I4I4i7', m.t, m.a, m.b, m.u), m.u + m.b * m.z
  if m.t ~= 0 or m.a ~= 0 then expiry = max(expiry, m.t + m.window) end
end
--[answer]
answer = pack('<i7I4I4i7', m.t, m.a, m.b, m.u)
