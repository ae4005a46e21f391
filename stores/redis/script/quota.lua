-- Quotas: the twin of internal/meter/quota.go.

-- capacity_with returns the capacity that a limit has with another quota, which is
-- not 0: that of a token bucket, its burst, changes in proportion.
local function capacity_with(m, quota)
  if m.capacity == m.quota or m.quota == 0 then return quota end
  return math.min(MOST, max(1, (muldiv(m.capacity, quota, m.quota))))
end

-- add_count returns a count of hits after n more. A charge may go above the quota.
local function add_count(count, n) return math.min(count + n, MOST) end
