-- Token bucket. With TAT the time at which the bucket is full again, and
-- E = window / quota microseconds for a hit,
--   allowed ⇔ max(TAT, now) + E × cost − E × burst ≤ now
-- The debt is q whole microseconds and r parts of 1 / rate microsecond, r < rate. The rate is the
-- quota of the last charge, so that programs with different quotas agree on the hits that are owed.
-- A charge above the quota may leave a debt up to twice the burst: over tells such a debt from one
-- that only a step of the clock explains.
-- State: the time now + q, r with over as its highest bit, and the rate. A quota of 0 pays nothing
-- off. x and y are the limit's own quota and burst.
local function above(q, r, q2, r2) return q > q2 or q == q2 and r > r2 end
-- burst_at returns the burst for a quota: it changes in proportion.
local function burst_at(quota, x, y)
  if quota == x then return y end
  if y == x or x == 0 or quota == 0 then return quota end
  return min(MOST, max(1, (muldiv(y, quota, x))))
end
-- pay returns what is left of a debt after a payment, and whether it is above the burst.
local function pay(q, r, less_q, less_r, rate, window, x, y)
  if above(less_q, less_r, q, r) then return 0, 0, false end
  q, r = q - less_q, r - less_r
  if r < 0 then q, r = q - 1, r + rate end
  return q, r, above(q, r, muldiv(window, burst_at(rate, x, y), rate))
end
--[none]
x, y = unpack('<i8i8', rule, limit + NUMBERS)
q, r, rate, over = 0, 0, max(1, quota), false
--[load]
good = bytes == 15
if good then
  local time, fraction, at_rate = unpack('<i7I4I4', v, state)
  local owes_over = fraction > MOST
  if owes_over then fraction = fraction - MOST - 1 end
  good = at_rate >= 1 and at_rate <= MOST and fraction < at_rate
  if good and (time > now or time == now and fraction > 0) then
    q, r, rate, over = time - now, fraction, at_rate, owes_over
    -- More than a charge leaves, and what a window pays off, can only be owed to a
    -- clock that has been set back. The quota may have been raised since the charge.
    if q >= window and quota > 0 then
      local burst = burst_at(rate, x, y)
      local most_q, most_r = muldiv((over and 2 or 1) * window, max(burst, y), rate)
      if not above(most_q + window, most_r, q, r) then
        q, r = muldiv(window, burst, rate)
        over, moved = false, true
      end
    end
  end
end
--[left]
-- ceil((q × rate + r) / window) hits are owed.
local owed, rest = muldiv(q, rate, window)
left = capacity - owed - ceil((rest + r) / window)
--[charge]
if quota > 0 then -- else nothing pays a debt off
  if rate ~= quota then -- the debt in hits stays what it was
    local whole, part = muldiv(q, rate, quota)
    q, r = muldiv(1, part + r, quota)
    q = whole + q -- inexact only if it is above all that can be owed
  end
  rate = quota
  local cost_q, cost_r = muldiv(window, cost, rate)
  q, r = q + cost_q, r + cost_r
  if r >= rate then q, r = q + 1, r - rate end
  over = above(q, r, muldiv(window, capacity, rate))
  if over then
    local most_q, most_r = muldiv(2 * window, capacity, rate)
    if above(q, r, most_q, most_r) then q, r = most_q, most_r end
  end
end
--[refund]
-- A debt is paid off in the order in which it was made: of this charge nothing is owed any
-- more once all that was owed then has been paid.
local owed = at + reset - now
if owed > 0 and quota > 0 then
  local less_q, less_r = muldiv(window, cost, rate)
  if above(less_q, less_r, owed, 0) then less_q, less_r = owed, 0 end
  q, r, over = pay(q, r, less_q, less_r, rate, window, x, y)
end
--[grant]
if quota > 0 then
  local less_q, less_r = muldiv(window, given, rate)
  q, r, over = pay(q, r, less_q, less_r, rate, window, x, y)
end
--[dump]
if q > 0 or r > 0 then
  expiry = now + q + 1
  record = pack('<I3i7I7i7I4I4', 29, expiry, identity, now + q, over and r + MOST + 1 or r, rate)
end
