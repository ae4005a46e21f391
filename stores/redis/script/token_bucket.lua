-- Token bucket. With TAT the time at which the bucket is full again, and
-- E = window / quota microseconds for a hit,
--   allowed ⇔ max(TAT, now) + E × cost − E × burst ≤ now
-- Source: the generic cell rate algorithm of ITU-T I.371, annex A
-- (https://www.itu.int/rec/T-REC-I.371). E is rarely a whole number.
-- The debt is kept as q whole microseconds and r parts of 1 / rate microsecond:
-- (q, r) with r < rate. The rate is the quota at the last charge, which pays the
-- debt off. So programs with different quotas agree on how many hits are owed.
-- A charge that nobody has allowed may leave a debt above the burst, up to twice the
-- burst: over tells such a debt from one that only a step of the clock explains.
-- State: the time now + q, r with over as its highest bit, and the rate. With a quota of 0,
-- which allows nothing and forgets nothing, it is kept as it is.
-- m.x and m.y are the limit's own quota and burst.
local function above(q, r, q2, r2) return q > q2 or q == q2 and r > r2 end
-- burst_at returns the burst with a quota: it changes in proportion to the limit's own.
local function burst_at(m, quota)
  if quota == m.x then return m.y end
  if m.y == m.x or m.x == 0 or quota == 0 then return quota end
  return min(MOST, max(1, (muldiv(m.y, quota, m.x))))
end
-- pay takes (q, r) off what is owed.
local function pay(m, q, r)
  if above(q, r, m.q, m.r) then q, r = m.q, m.r end
  q, r = m.q - q, m.r - r
  if r < 0 then q, r = q - 1, r + m.rate end
  m.q, m.r, m.over = q, r, above(q, r, muldiv(m.window, burst_at(m, m.rate), m.rate))
end
--[none]
m.q, m.r, m.rate, m.over, m.kept = 0, 0, max(1, m.quota), false, nil
--[load]
good = after == at + 15
if good then
  local t, r, rate = unpack('<i7I4I4', v, at)
  local over = r > MOST
  if over then r = r - MOST - 1 end
  good = rate >= 1 and rate <= MOST and r < rate
  local q = t - now
  m.q, m.r, m.rate, m.over, m.kept = 0, 0, max(1, m.quota), false, nil
  if good and (q > 0 or q == 0 and r > 0) then
    m.q, m.r, m.rate, m.over = q, r, rate, over
    if m.quota == 0 then m.kept = sub(v, at, at + 14) end
    -- More than a charge leaves, and what a window pays off, can only be owed to a
    -- clock that has been set back. The quota may have been raised since the charge.
    if q >= m.window and m.quota > 0 then
      local burst = burst_at(m, rate)
      local most_q, most_r = muldiv((over and 2 or 1) * m.window, max(burst, m.y), rate)
      if not above(most_q + m.window, most_r, q, r) then
        m.q, m.r = muldiv(m.window, burst, rate)
        m.over, m.ahead = false, true
      end
    end
  end
end
--[left]
-- ceil((q × rate + r) / window) hits are owed.
local owed, rest = muldiv(m.q, m.rate, m.window)
left = m.capacity - owed - ceil((rest + m.r) / m.window)
--[charge]
if m.quota > 0 then -- else nothing pays a debt off
  local q, r = m.q, m.r
  if m.rate ~= m.quota then -- the debt in hits stays what it was
    local whole, part = muldiv(q, m.rate, m.quota)
    q, r = muldiv(1, part + r, m.quota)
    q = whole + q -- inexact only if it is above all that can be owed
  end
  m.rate = m.quota
  local cost_q, cost_r = muldiv(m.window, cost, m.rate)
  q, r = q + cost_q, r + cost_r
  if r >= m.rate then q, r = q + 1, r - m.rate end
  m.over = above(q, r, muldiv(m.window, m.capacity, m.rate))
  if m.over then
    local most_q, most_r = muldiv(2 * m.window, m.capacity, m.rate)
    if above(q, r, most_q, most_r) then q, r = most_q, most_r end
  end
  m.q, m.r = q, r
end
--[refund]
-- A debt is paid off in the order in which it was made: of this charge nothing is owed any
-- more once all that was owed then has been paid.
local owed = at + reset - now
if owed > 0 and not m.kept then
  local q, r = muldiv(m.window, cost, m.rate)
  if above(q, r, owed, 0) then q, r = owed, 0 end
  pay(m, q, r)
end
--[grant]
if not m.kept then pay(m, muldiv(m.window, n, m.rate)) end
--[dump]
if m.q > 0 or m.r > 0 then
  state, expiry = m.kept or pack('<i7I4I4', now + m.q, m.over and m.r + MOST + 1 or m.r, m.rate), now + m.q + 1
end
