-- Bucketed window. Bucket k holds the hits of [k × precision, (k + 1) × precision). With
-- full = window / precision and k = floor(now / precision),
--   allowed ⇔ hits of the buckets k − full … k, + cost ≤ quota
-- Source: "Sliding windows" of Josiah Carlson, Introduction to rate limiting with
-- Redis, part 2, with one bucket more: see internal/meter/bucketed_window.go.
-- https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html
-- State: t the last bucket's k, a the hits of all, n how many buckets,
-- then their counts, oldest first, from position from of the string src on.
local function bucket(m, i) return (unpack('<I4', m.src, m.from + 4 * (i - 1))) end
local function buckets(m, i, j) return sub(m.src, m.from + 4 * (i - 1), m.from + 4 * j - 1) end
-- add adds hits to a bucket, or takes off as many as it has.
local function add(m, i, hits)
  hits = max(hits, -bucket(m, i))
  m.src, m.from = buckets(m, 1, i - 1) .. pack('<I4', bucket(m, i) + hits) .. buckets(m, i + 1, m.n), 1
  m.a = m.a + hits
  return hits
end
-- trim drops the oldest buckets that no longer count or hold nothing. A last bucket that is
-- ahead of now is the one that runs.
local function trim(m, now)
  local old = max(m.t, floor(now / m.precision)) - m.window / m.precision - (m.t - m.n + 1) -- so many do not count
  while m.n > 0 and (old > 0 or bucket(m, 1) == 0) do
    m.a, m.n, m.from, old = m.a - bucket(m, 1), m.n - 1, m.from + 4, old - 1
  end
end
-- wait returns how long until the first buckets that have more hits than are too many, or all
-- buckets with hits, count no more.
local function wait(m, now, excess)
  local i = 0
  while excess > 0 and i < m.n do
    i = i + 1
    excess = excess - bucket(m, i)
  end
  return i > 0 and (m.t - m.n + i + 1) * m.precision + m.window - now or 0
end
--[none]
m.t, m.a, m.n, m.src, m.from = 0, 0, 0, '', 1
--[load]
good = after >= at + 13
if good then
  m.t, m.a, m.n = unpack('<i7I4I2', v, at)
  m.src, m.from = v, at + 13
  good = m.a <= MOST and m.n <= m.window / m.precision + 1 and after == at + 13 + 4 * m.n
  local sum = 0
  for p = good and at + 13 or after, after - 4, 4 do sum = sum + unpack('<I4', v, p) end
  good = good and sum == m.a
  -- If the last is moved back, the buckets keep their distances.
  if m.t * m.precision - now >= m.window then m.t, m.ahead = floor(now / m.precision), true end
  if good then trim(m, now) end
end
--[left]
left = m.quota - m.a
--[charge]
local k = floor(now / m.precision)
if m.n == 0 then m.t = k - 1 end
k = max(k, m.t)
m.src, m.from = buckets(m, 1, m.n) .. string.rep('\0', 4 * (k - m.t)), 1
m.n, m.t = m.n + k - m.t, k
add(m, m.n, min(cost, MOST - m.a))
--[refund]
local i = floor(at / m.precision) - m.t + m.n
if i >= 1 and i <= m.n then
  add(m, i, -cost)
  trim(m, now)
end
--[grant]
for i = m.n, 1, -1 do
  if n > 0 then n = n + add(m, i, -n) end
end
trim(m, now)
--[dump]
if changed and m.n > 0 then
  state = pack('<i7I4I2', m.t, m.a, m.n) .. buckets(m, 1, m.n)
  expiry = (m.t + 1) * m.precision + m.window
end
--[answer]
-- As of a sliding log, with the time of the last bucket.
local left, time = max(0, m.quota - m.a), m.n > 0 and m.t * m.precision or now
local more = left < m.quota and wait(m, now, m.a + left + 1 - m.quota) or 0
local reset = left < m.quota and wait(m, now, m.a) or 0
local retry = cost <= m.quota and wait(m, now, m.a + cost - m.quota) or 0
answer = pack('<I4i7i7i7i7', left, reset, more, retry, time)
