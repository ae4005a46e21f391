-- Bucketed window: the twin of internal/meter/bucketed_window.go. Bucket k holds
-- the hits of [k × precision, (k + 1) × precision). With n = window / precision
-- and k = floor(now / precision),
--   allowed ⇔ hits of the buckets k − n … k, + cost ≤ quota
-- Source: "Sliding windows" of Josiah Carlson, Introduction to rate limiting with
-- Redis, part 2, with one bucket more: see the twin.
-- https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html
-- State: newest the last bucket's k, total the hits of all, n how many buckets,
-- then their counts, oldest first, from position from of the string src on.
make[BUCKETED] = function()
  local function count(m, i) return (unpack('<I4', m.src, m.from + 4 * (i - 1))) end
  -- running returns the bucket of the decision: the last one if that is ahead.
  local function running(m)
    local k = floor(now / m.precision)
    if (m.n or 0) > 0 and m.newest > k then return m.newest end
    return k
  end
  local function last_needed(m) return running(m) - m.window / m.precision end
  local function set(m, i, c)
    m.src = sub(m.src, m.from, m.from + 4 * i - 5) .. pack('<I4', c) .. sub(m.src, m.from + 4 * i, m.from + 4 * m.n - 1)
    m.from = 1
  end
  -- trim drops the oldest buckets that no longer count or hold nothing.
  local function trim(m)
    local old = last_needed(m) - (m.newest - m.n + 1) -- so many do not count
    while m.n > 0 do
      local c = count(m, 1)
      if old <= 0 and c > 0 then return end
      m.total, m.n, m.from, old = m.total - c, m.n - 1, m.from + 4, old - 1
    end
    m.total = 0
  end
  -- sum returns the hits of n buckets from position p of v on.
  local function sum(v, p, n)
    local hits = 0
    while n >= 8 do
      local a, b, c, d, e, f, g, h = unpack('<I4I4I4I4I4I4I4I4', v, p)
      hits, p, n = hits + a + b + c + d + e + f + g + h, p + 32, n - 8
    end
    for i = 0, n - 1 do hits = hits + unpack('<I4', v, p + 4 * i) end
    return hits
  end
  return {
    load = function(m, v, at)
      local newest, total, n = unpack('<i7I4I2', v, at)
      if total > MOST or n > m.window / m.precision + 1 or total ~= sum(v, at + 13, n) then return false end
      -- If the last is moved back, the buckets keep their distances.
      if newest * m.precision - now >= m.window then newest, m.mended = floor(now / m.precision), true end
      m.newest, m.total, m.n, m.src, m.from = newest, total, n, v, at + 13
      trim(m)
      return true
    end,
    dump = function(m)
      if (m.n or 0) == 0 then return nil end
      return pack('<i7I4I2', m.newest, m.total, m.n) .. sub(m.src, m.from, m.from + 4 * m.n - 1)
    end,
    time = function(m) return (m.n or 0) > 0 and m.newest * m.precision or nil end,
    left = function(m) return m.quota - (m.total or 0) end,
    charge = function(m, cost)
      local k = running(m)
      if (m.n or 0) == 0 then
        m.newest, m.total, m.n, m.src, m.from = k, cost, 1, pack('<I4', cost), 1
        return
      end
      cost = add_count(m.total, cost) - m.total
      m.total = m.total + cost
      if m.newest == k then return set(m, m.n, count(m, m.n) + cost) end
      m.src = sub(m.src, m.from, m.from + 4 * m.n - 1) .. rep('\0', 4 * (k - m.newest - 1)) .. pack('<I4', cost)
      m.from, m.n, m.newest = 1, m.n + k - m.newest, k
    end,
    wait = function(m, cost)
      local excess = (m.total or 0) + cost - m.quota
      if excess <= 0 then return 0 end
      local i = 1
      if excess == m.total then -- all of it: the last bucket that holds anything
        i = m.n
        while i > 1 and count(m, i) == 0 do i = i - 1 end
      else
        excess = excess - count(m, 1)
        while excess > 0 and i < m.n do
          i = i + 1
          excess = excess - count(m, i)
        end
      end
      return (m.newest - m.n + i + 1) * m.precision + m.window - now
    end,
    refund = function(m, cost, at)
      local i = floor(at / m.precision) - (m.newest or 0) + (m.n or 0)
      if i < 1 or i > (m.n or 0) then return end
      local c = count(m, i)
      cost = math.min(cost, c)
      m.total = m.total - cost
      set(m, i, c - cost)
      trim(m)
    end,
    grant = function(m, n)
      n = math.min(n, m.total or 0)
      if n == 0 then return end
      m.total = m.total - n
      local i, c = m.n, count(m, m.n)
      while n > c do n, i, c = n - c, i - 1, count(m, i - 1) end
      m.src = sub(m.src, m.from, m.from + 4 * i - 5) .. pack('<I4', c - n) .. rep('\0', 4 * (m.n - i))
      m.from = 1
      trim(m)
    end,
    expiry = function(m) return (m.newest + 1) * m.precision + m.window end,
  }
end
