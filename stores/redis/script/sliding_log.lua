-- Sliding log. It keeps the time of every hit:
--   allowed ⇔ hits with now − time < window, + cost ≤ quota
-- State, in the table m: n the number of hits, then their times, oldest first, seven bytes each, from
-- position from of the string src on. A charge of c adds its time c times.
local function hit(m, i) return (unpack('<i7', m.src, m.from + 7 * (i - 1))) end
local function hits(m, i, j) return sub(m.src, m.from + 7 * (i - 1), m.from + 7 * j - 1) end
-- upto returns how many of the hits are not later than t.
local function upto(m, t)
  local low, high = 0, m.n
  while low < high do
    local mid = ceil((low + high) / 2)
    if hit(m, mid) <= t then low = mid else high = mid - 1 end
  end
  return low
end
--[none]
m = { n = 0, src = '', from = 1 }
--[load]
good = bytes >= 2 and bytes == 2 + 7 * unpack('<I2', v, state)
if good then
  m.src, m.from, m.n = v, state + 2, (bytes - 2) / 7
  local last = m.n > 0 and hit(m, 1) or now
  for p = state + 9, next - 7, 7 do
    local t = unpack('<i7', v, p)
    good, last = good and t >= last, t -- only damage makes a hit earlier than the one before
  end
  if good and last - now >= window then
    local n = upto(m, now)
    m.src, m.from, last, moved = hits(m, 1, n) .. string.rep(pack('<i7', now), m.n - n), 1, now, true
  end
  local gone = good and upto(m, max(now, last) - window) or 0
  m.n, m.from = m.n - gone, m.from + 7 * gone
end
--[left]
left = quota - m.n
--[charge]
local n, most = m.n, max(quota, m.n) -- another quota may have allowed more hits
local time = n > 0 and max(now, hit(m, n)) or now
local added = min(cost, most)
local dropped = max(0, n + added - most) -- the oldest make room
m.src = hits(m, dropped + 1, n) .. string.rep(pack('<i7', time), added)
m.n, m.from = n - dropped + added, 1
--[refund]
local before, until_at = upto(m, at - 1), upto(m, at)
local n = min(cost, until_at - before)
m.src, m.from, m.n = hits(m, 1, before) .. hits(m, before + n + 1, m.n), 1, m.n - n
--[grant]
m.n = max(0, m.n - given)
--[dump]
if m.n > 0 then
  expiry = hit(m, m.n) + window
  record = pack('<I3i7I7I2', 16 + 7 * m.n, expiry, identity, m.n) .. hits(m, 1, m.n)
end
--[answer]
-- What is left, how long until all is free again, until more is left and until the cost is
-- allowed, and the time of the last hit.
local left, reset, more, retry, time = max(0, quota - m.n), 0, 0, 0, now
if m.n > 0 then time = hit(m, m.n) end
if left < quota then
  reset, more = time + window - now, hit(m, m.n + left + 1 - quota) + window - now
end
if cost <= quota and m.n + cost > quota then retry = hit(m, m.n + cost - quota) + window - now end
answer = pack('<I4i7i7i7i7', left, reset, more, retry, time)
