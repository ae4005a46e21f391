-- Sliding log: the twin of internal/meter/sliding_log.go. It keeps the time of
-- every hit:
--   allowed ⇔ hits with now − time < window, + cost ≤ quota
-- Source: "Moving window" of
-- https://limits.readthedocs.io/en/stable/strategies.html
-- State: n how many, then the times, oldest first, seven bytes each, from
-- position from of the string src on. A hit of cost c is c times in it, so that
-- the i-th oldest hit is found at once.
make[LOG] = function()
  local function hit(m, i) return (unpack('<i7', m.src, m.from + 7 * (i - 1))) end
  -- upto returns how many of the hits are not later than t.
  local function upto(m, t)
    local low, high = 0, m.n
    while low < high do
      local mid = floor((low + high + 1) / 2)
      if hit(m, mid) <= t then low = mid else high = mid - 1 end
    end
    return low
  end
  -- ordered tells whether no hit is earlier than the one before it: only damage
  -- makes it so, and what is found by halving is wrong then.
  local function ordered(m)
    local src, p, last = m.src, m.from, nil
    for _ = 1, floor((m.n - 1) / 7) do
      local a, b, c, d, e, f, g, h = unpack('<i7i7i7i7i7i7i7i7', src, p)
      if a > b or b > c or c > d or d > e or e > f or f > g or g > h then return false end
      p, last = p + 49, h
    end
    for _ = 1, m.n > 0 and (m.n - 1) % 7 + 1 or 0 do
      local t = unpack('<i7', src, p)
      if last and t < last then return false end
      p, last = p + 7, t
    end
    return true
  end
  local function part(m, i, j) return sub(m.src, m.from + 7 * (i - 1), m.from + 7 * j - 1) end
  return {
    load = function(m, v, at)
      m.n, m.src, m.from = unpack('<I2', v, at), v, at + 2
      if not ordered(m) then return false end
      if m.n > 0 and hit(m, m.n) - now >= m.window then
        local n = upto(m, now)
        m.src, m.from, m.mended = part(m, 1, n) .. rep(pack('<i7', now), m.n - n), 1, true
      end
      local last = m.n > 0 and max(now, hit(m, m.n)) - m.window
      if m.n > 0 and hit(m, 1) <= last then
        local gone = upto(m, last)
        m.n, m.from = m.n - gone, m.from + 7 * gone
      end
      return true
    end,
    dump = function(m)
      if (m.n or 0) == 0 then return nil end
      return pack('<I2', m.n) .. part(m, 1, m.n)
    end,
    time = function(m) return (m.n or 0) > 0 and hit(m, m.n) or nil end,
    left = function(m) return m.quota - (m.n or 0) end,
    charge = function(m, cost)
      local at, n = now, m.n or 0
      if n > 0 then at = max(now, hit(m, n)) end
      -- At most the quota is left, or as many as there are if another quota has
      -- admitted more. The oldest make room.
      local most = max(m.quota, n)
      cost = math.min(cost, most)
      local hits, dropped = rep(pack('<i7', at), cost), max(0, n + cost - most)
      if n > dropped then hits = part(m, dropped + 1, n) .. hits end
      m.n, m.src, m.from = n - dropped + cost, hits, 1
    end,
    wait = function(m, cost)
      local excess = (m.n or 0) + cost - m.quota
      if excess <= 0 then return 0 end
      return hit(m, excess) + m.window - now
    end,
    refund = function(m, cost, at)
      if (m.n or 0) == 0 then return end
      local before, upto_at = upto(m, at - 1), upto(m, at)
      cost = math.min(cost, upto_at - before)
      m.src, m.from, m.n = part(m, 1, before) .. part(m, before + cost + 1, m.n), 1, m.n - cost
    end,
    grant = function(m, n) m.n = max(0, (m.n or 0) - n) end,
    expiry = function(m) return hit(m, m.n) + m.window end,
  }
end
