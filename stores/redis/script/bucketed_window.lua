-- Bucketed window. Bucket k holds the hits of [k × precision, (k + 1) × precision). With
-- full = window / precision and k = floor(now / precision),
--   allowed ⇔ hits of the buckets k − full … k, + cost ≤ quota
-- State, in the table m: t the last bucket's k, a the hits of all, n the number of buckets, then
-- their counts, oldest first, from position from of the string src on.
local function bucket(m, i) return (unpack('<I4', m.src, m.from + 4 * (i - 1))) end
local function buckets(m, i, j) return sub(m.src, m.from + 4 * (i - 1), m.from + 4 * j - 1) end
-- add adds hits to a bucket; fewer than 0 are taken off, as far as it has them.
local function add(m, i, hits)
  hits = max(hits, -bucket(m, i))
  m.src, m.from = buckets(m, 1, i - 1) .. pack('<I4', bucket(m, i) + hits) .. buckets(m, i + 1, m.n), 1
  m.a = m.a + hits
  return hits
end
-- trim drops the oldest buckets that have expired or are empty. The running bucket is that of now,
-- or the last one if that is ahead.
local function trim(m, now)
  local old = max(m.t, floor(now / m.precision)) - m.window / m.precision - (m.t - m.n + 1) -- so many have expired
  while m.n > 0 and (old > 0 or bucket(m, 1) == 0) do
    m.a, m.n, m.from, old = m.a - bucket(m, 1), m.n - 1, m.from + 4, old - 1
  end
end
-- wait returns how long until the excess hits have expired, or all hits if they are fewer.
local function wait(m, now, excess)
  local i = 0
  while excess > 0 and i < m.n do
    i = i + 1
    excess = excess - bucket(m, i)
  end
  return i > 0 and (m.t - m.n + i + 1) * m.precision + m.window - now or 0
end
--[none]
m = { window = window, precision = precision, t = 0, a = 0, n = 0, src = '', from = 1 }
--[load]
good = bytes >= 13
if good then
  m.t, m.a, m.n = unpack('<i7I4I2', v, state)
  m.src, m.from = v, state + 13
  good = m.a <= MOST and m.n <= window / precision + 1 and bytes == 13 + 4 * m.n
  local sum = 0
  for p = state + 13, good and next - 4 or 0, 4 do sum = sum + unpack('<I4', v, p) end
  good = good and sum == m.a
  if m.t * precision - now >= window then m.t, moved = floor(now / precision), true end
  if good then trim(m, now) end
end
--[left]
left = quota - m.a
--[charge]
local k = floor(now / precision)
if m.n == 0 then m.t = k - 1 end
k = max(k, m.t)
m.src, m.from = buckets(m, 1, m.n) .. string.rep('\0', 4 * (k - m.t)), 1
m.n, m.t = m.n + k - m.t, k
add(m, m.n, min(cost, MOST - m.a))
--[refund]
local i = floor(at / precision) - m.t + m.n
if i >= 1 and i <= m.n then
  add(m, i, -cost)
  trim(m, now)
end
--[grant]
for i = m.n, 1, -1 do
  if given > 0 then given = given + add(m, i, -given) end
end
trim(m, now)
--[dump]
if m.n > 0 then
  expiry = (m.t + 1) * precision + window
  record = pack('<I3i7I7I6i7I4I2', 33 + 4 * m.n, expiry, identity, precision, m.t, m.a, m.n) .. buckets(m, 1, m.n)
end
--[answer]
-- As of a sliding log, with the time of the last bucket.
local left, time = max(0, quota - m.a), m.n > 0 and m.t * precision or now
local more = left < quota and wait(m, now, m.a + left + 1 - quota) or 0
local reset = left < quota and wait(m, now, m.a) or 0
local retry = cost <= quota and wait(m, now, m.a + cost - quota) or 0
answer = pack('<I4i7i7i7i7', left, reset, more, retry, time)
