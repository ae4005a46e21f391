-- Token bucket: the twin of internal/meter/token_bucket.go. With TAT the time at
-- which the bucket is full again, and E = window / quota microseconds for a hit,
--   allowed ⇔ max(TAT, now) + E × cost − E × burst ≤ now
-- Source: the generic cell rate algorithm of ITU-T I.371, annex A
-- (https://www.itu.int/rec/T-REC-I.371). E is rarely a whole number.
-- The debt is kept as q whole microseconds and r parts of 1 / rate microsecond:
-- (q, r) with r < rate. The rate is the quota at the last charge, which pays the
-- debt off. So programs with different quotas agree on how many hits are owed.
-- A charge that nobody has admitted may leave a debt above the burst, up to twice the
-- burst: over tells such a debt from one that only a step of the clock explains.
-- State: the time now + q, r with over as its highest bit, and the rate.
make[TOKEN] = function()
  -- costs returns what n hits cost, as (q, r).
  local function costs(m, n) return muldiv(m.window, n, m.rate) end
  local function above(q, r, q2, r2) return q > q2 or q == q2 and r > r2 end
  -- most returns what n hits cost twice.
  local function most(m, n) return muldiv(2 * m.window, n, m.rate) end
  -- over returns by how much what is owed is above (q, r), rounded up to whole
  -- microseconds; 0 if it is not.
  local function over(m, q, r)
    q = m.q - q
    if m.r > r then q = q + 1 end
    return max(0, q)
  end
  -- pay takes (q, r) off what is owed.
  local function pay(m, q, r)
    if above(q, r, m.q, m.r) then q, r = m.q, m.r end
    q, r = m.q - q, m.r - r
    if r < 0 then q, r = q - 1, r + m.rate end
    m.q, m.r, m.over = q, r, above(q, r, costs(m, capacity_with(m, m.rate)))
  end
  return {
    load = function(m, v, at)
      local t, r, rate = unpack('<i7I4I4', v, at)
      local over = r > MOST
      if over then r = r - MOST - 1 end
      if rate < 1 or rate > MOST or r >= rate then return false end
      local q = t - now
      if q < 0 or q == 0 and r == 0 then return true end
      if m.quota == 0 then -- admits nothing, and forgets nothing
        m.kept, m.kept_until = sub(v, at, at + 14), t + 1
        return true
      end
      m.q, m.r, m.rate, m.over = q, r, rate, over
      -- More than a charge leaves, and what a window pays off, can only be owed to a
      -- clock that has been set back. The quota may have been raised since the charge.
      if q >= m.window then
        local burst = capacity_with(m, rate)
        local most_q, most_r = (over and most or costs)(m, max(burst, m.own_capacity))
        if not above(most_q + m.window, most_r, q, r) then
          m.q, m.r = costs(m, burst)
          m.over, m.mended = false, true
        end
      end
      return true
    end,
    dump = function(m)
      if m.kept then return m.kept end
      if not m.q or m.q == 0 and m.r == 0 then return nil end
      return pack('<i7I4I4', now + m.q, m.over and m.r + MOST + 1 or m.r, m.rate)
    end,
    time = function() return nil end, -- what a later clock has charged is a larger debt
    left = function(m)
      if not m.q then return m.capacity end
      -- ceil((q × rate + r) / window) hits are owed.
      local n, rest = muldiv(m.q, m.rate, m.window)
      return m.capacity - n - ceil((rest + m.r) / m.window)
    end,
    charge = function(m, cost)
      if m.quota == 0 then return end -- nothing pays a debt off
      local q, r = m.q or 0, m.r or 0
      if m.q and m.rate ~= m.quota then -- the debt in hits stays what it was
        local whole, part = muldiv(q, m.rate, m.quota)
        q, r = muldiv(1, part + r, m.quota)
        q = whole + q -- inexact only if it is above all that can be owed
      end
      m.rate = m.quota
      local cost_q, cost_r = costs(m, cost)
      q, r = q + cost_q, r + cost_r
      if r >= m.rate then q, r = q + 1, r - m.rate end
      m.over = above(q, r, costs(m, m.capacity))
      if m.over then
        local most_q, most_r = most(m, m.capacity)
        if above(q, r, most_q, most_r) then q, r = most_q, most_r end
      end
      m.q, m.r = q, r
    end,
    wait = function(m, cost)
      if not m.q then return 0 end
      return over(m, costs(m, m.capacity - cost))
    end,
    refund = function(m, cost, at, reset)
      -- A debt is paid off in the order in which it was made: of this charge
      -- nothing is owed any more once all that was owed then has been paid.
      local owed = at + reset - now
      if not m.q or owed <= 0 then return end
      local q, r = costs(m, cost)
      if above(q, r, owed, 0) then q, r = owed, 0 end
      pay(m, q, r)
    end,
    grant = function(m, n) if m.q then pay(m, costs(m, n)) end end,
    expiry = function(m) return m.kept_until or now + m.q + 1 end,
  }
end
