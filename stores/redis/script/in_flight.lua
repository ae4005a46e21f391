-- Leases. They allow what is under way:
--   allowed ⇔ the costs of the leases that have not ended, + cost ≤ quota
-- State: n how many, then each: the lease (8 bytes), its end (7) and its cost (4). ends and
-- costs have the leases by name, and a is the sum of the costs. Only a take has a lease: a
-- charge leaves leases alone, as a refund does.
local NO_LEASE, MOST_LEASES = '\0\0\0\0\0\0\0\0', 40000
-- renew makes a lease end a window from now, and adds it if it is not there.
local function renew(m, now, cost)
  if not m.ends[m.lease] and m.n < MOST_LEASES then
    m.ends[m.lease], m.costs[m.lease], m.n, m.a = 0, min(cost, MOST), m.n + 1, m.a + cost
  end
  if m.ends[m.lease] then m.ends[m.lease] = max(m.ends[m.lease], now + m.window) end
end
-- release ends a lease, and returns whether it was there.
local function release(m)
  if not m.ends[m.lease] then return false end
  m.n, m.a = m.n - 1, m.a - m.costs[m.lease]
  m.ends[m.lease], m.costs[m.lease] = nil, nil
  return true
end
--[none]
m.ends, m.costs, m.n, m.a = {}, {}, 0, 0
--[load]
good = after >= at + 2 and after == at + 2 + 19 * unpack('<I2', v, at)
m.ends, m.costs, m.n, m.a = {}, {}, 0, 0
for p = good and at + 2 or after, after - 19, 19 do
  local lease, ends, cost = unpack('<c8i7I4', v, p)
  good = good and cost > 0 and cost <= MOST
  if ends - now >= 2 * m.window then ends, m.ahead = now + m.window, true end
  if ends > now then m.ends[lease], m.costs[lease], m.n, m.a = ends, cost, m.n + 1, m.a + cost end
end
--[left]
left = m.quota - m.a
--[charge]
if m.lease ~= NO_LEASE then renew(m, now, cost) end
--[refund]
if m.lease ~= NO_LEASE then release(m) end
--[renew]
renew(m, now, cost)
changed = true
--[release]
changed = release(m)
--[dump]
if changed and m.n > 0 then
  local all = { pack('<I2', m.n) }
  expiry = 0
  for lease, ends in pairs(m.ends) do
    all[#all + 1], expiry = pack('<c8i7I4', lease, ends, m.costs[lease]), max(expiry, ends)
  end
  state = table.concat(all)
end
--[answer]
-- As of a sliding log; but nobody knows when a lease will be released.
answer = pack('<I4i7i7i7i7', max(0, m.quota - m.a), 0, 0, m.a + cost > m.quota and 1000000 or 0, now)
