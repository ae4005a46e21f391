-- Quotas: the twin of internal/meter/quota.go.

-- capacity_with returns the capacity that a token bucket has with a quota: its burst
-- changes in proportion to the limit's own.
local function capacity_with(m, quota)
  if quota == m.own_quota then return m.own_capacity end
  if m.own_capacity == m.own_quota or m.own_quota == 0 or quota == 0 then return quota end
  return math.min(MOST, max(1, (muldiv(m.own_capacity, quota, m.own_quota))))
end

-- add_count returns a count of hits after n more. A charge may go above the quota.
local function add_count(count, n) return math.min(count + n, MOST) end
