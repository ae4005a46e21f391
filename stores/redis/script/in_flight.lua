-- Leases. They allow what is under way:
--   allowed ⇔ the costs of the leases that have not ended, + cost ≤ quota
-- State, in the table m: n how many, then each: the lease (8 bytes), its end (7) and its cost (4). ends and
-- costs have the leases by name, and a is the sum of the costs. Only a take has a lease: a
-- charge leaves leases alone, as a refund does.
local NO_LEASE, MOST_LEASES = '\0\0\0\0\0\0\0\0', 40000
-- renew makes a lease end a window from now, and adds it if it is not there.
local function renew(m, lease, now, cost)
  if not m.ends[lease] and m.n < MOST_LEASES then
    m.ends[lease], m.costs[lease], m.n, m.a = 0, min(cost, MOST), m.n + 1, m.a + cost
  end
  if m.ends[lease] then m.ends[lease] = max(m.ends[lease], now + m.window) end
end
-- release ends a lease, and returns whether it was there.
local function release(m, lease)
  if not m.ends[lease] then return false end
  m.n, m.a = m.n - 1, m.a - m.costs[lease]
  m.ends[lease], m.costs[lease] = nil, nil
  return true
end
--[none]
m = { window = window, ends = {}, costs = {}, n = 0, a = 0 }
--[load]
good = bytes >= 2 and bytes == 2 + 19 * unpack('<I2', v, state)
for p = state + 2, good and next - 19 or 0, 19 do
  local held, ends, cost = unpack('<c8i7I4', v, p)
  good = good and cost > 0 and cost <= MOST
  if ends - now >= 2 * window then ends, moved = now + window, true end
  if ends > now then m.ends[held], m.costs[held], m.n, m.a = ends, cost, m.n + 1, m.a + cost end
end
--[left]
left = quota - m.a
--[charge]
if lease ~= NO_LEASE then renew(m, lease, now, cost) end
--[refund]
if lease ~= NO_LEASE then release(m, lease) end
--[renew]
renew(m, lease, now, cost)
changed = true
--[release]
changed = release(m, lease)
--[dump]
if m.n > 0 then
  local all = { '' }
  expiry = 0
  for held, ends in pairs(m.ends) do
    all[#all + 1], expiry = pack('<c8i7I4', held, ends, m.costs[held]), max(expiry, ends)
  end
  all[1] = pack('<I3i7I7I2', 16 + 19 * m.n, expiry, identity, m.n)
  record = table.concat(all)
end
--[answer]
-- As of a sliding log; but nobody knows when a lease will be released.
answer = pack('<I4i7i7i7i7', max(0, quota - m.a), 0, 0, m.a + cost > quota and 1000000 or 0, now)
