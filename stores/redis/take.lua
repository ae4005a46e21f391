-- Decides on hits and counts them, for all limits of all keys in one step.
--
-- KEYS   the names under which the states are kept, one for each item: an item
--        is one key of one rule, with the limits of that rule.
-- ARGV   1  eight bytes that come back at the head of the reply
--        2  take, peek, back (give back, then look), refund or reset
--        3  milliseconds that a state is kept longer than it is needed
--        4  the time in microseconds since the Unix epoch; empty: this server's
--        then for each item
--             its limits, 21 bytes each: kind (algorithm × 2, + 1 where its
--             windows are aligned to the epoch), window, precision, quota,
--             capacity (the burst of a token bucket, else the quota); of a
--             lockout the first wait in place of the precision, and 16 bytes
--             more: factor, longest wait, decay
--             the cost
--             for back and refund: the time of the charge, and for each limit
--             what was said after it of the time until all is free again
-- Reply  a string: the eight bytes, the time, and, but for refund and reset,
--        for each limit of each item: what remains, how long until all is free
--        again, and how long until the cost is admitted (0 now, -1 never).
--
-- Times and counts are whole numbers. A number of Lua is exact below 2^53,
-- which every time and every count is; where a product may be above, muldiv
-- works in parts. Integers in strings are little-endian.

local floor, sub, byte, rep = math.floor, string.sub, string.byte, string.rep
local unpack_list = unpack
local pack, unpack = struct.pack, struct.unpack
local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT = 0, 1, 2, 3, 4, 5
local MOST = 2147483647 -- the largest quota, and so the largest count

local verb, slack, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not now then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- muldiv returns floor(a × b / c) and the remainder, exactly, for whole numbers
-- from 0: a < 2^53, b < 2^31, c < 2^45, and a quotient below 2^53.
local function muldiv(a, b, c)
  local p = a * b
  if p < 9007199254740992 then
    local r = p % c
    return (p - r) / c, r
  end
  -- a = q × c + r, so that what is left is r × b / c with r < c: by long
  -- division, in digits of b so small that two products fit into 2^53.
  local r = a % c
  local q = (a - r) / c * b
  local base, digit = 128, 268435456
  if c < 2147483648 then base, digit = 1048576, 1048576 end
  local quotient, left = 0, 0
  while digit >= 1 do
    local d = floor(b / digit)
    b = b - d * digit
    local x = left * base + r * d
    left = x % c
    quotient = quotient * base + (x - left) / c
    digit = digit / base
  end
  return q + quotient, left
end

-- anchor returns where the window begins that a first hit now opens.
local function anchor(m)
  if m.aligned then return now - now % m.window end
  return now
end

-- Each algorithm is a table of functions on a meter m, which is one limit of
-- one item:
--   load(m, v, at)   reads its state in v from at on and brings it to now;
--                    false where it is none. m.mended: the clock was set back,
--                    and what was in its future is not any more.
--   wait(m, cost)    how long until cost is admitted, 0 now
--   left(m)          the largest cost admitted now, or below 0 for none
--   charge(m, cost), refund(m, cost, at, reset)
--   dump(m)          the state as load reads it, nil where there is none
--   expiry(m)        from when on the state means the same as none
-- They are made when first needed: most calls need one of them.
local make = {}

-- What fixed and sliding windows share. State: t the window's start, a its
-- hits, b those of the window before; t is nil where there is none.
local function load_window(m, v, at, lengths)
  local t, a, b = unpack('<i7I4I4', v, at)
  if a > MOST or b > MOST then return false end
  if now < t + lengths * m.window then
    if t > now then t, m.mended = anchor(m), true end
    m.t, m.a, m.b = t, a, b
  end
  return true
end

local function dump_window(m)
  return m.t and pack('<i7I4I4', m.t, m.a, m.b)
end

make[FIXED] = function()
  return {
    load = function(m, v, at) return load_window(m, v, at, 1) end,
    dump = dump_window,
    expiry = function(m) return m.t + m.window end,
    left = function(m) return m.quota - (m.t and m.a or 0) end,
    wait = function(m, cost)
      if not m.t or m.a + cost <= m.quota then return 0 end
      return m.t + m.window - now
    end,
    charge = function(m, cost)
      if not m.t then m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = m.a + cost
    end,
    refund = function(m, cost, at)
      if m.t and at >= m.t and at < m.t + m.window then m.a = math.max(0, m.a - cost) end
    end,
  }
end

-- The sliding window weighs the window before by the part of it that a window
-- ending now still covers: floor((a × window + b × (window − e)) / window) hits
-- count, with e = now − t.
make[SLIDING] = function()
  -- turned returns the state with a window that has ended as the one before. A
  -- charge keeps it so; a refused request must not move windows on.
  local function turned(m)
    if not m.t then return now, 0, 0 end
    if now >= m.t + m.window then return m.t + m.window, 0, m.a end
    return m.t, m.a, m.b
  end
  local function used(m)
    local t, a, b = turned(m)
    if b == 0 then return a end
    return a + muldiv(m.window - (now - t), b, m.window)
  end
  -- fits returns the largest part of a window for which count, weighted by it,
  -- is not above room: floor(((room + 1) × window − 1) / count).
  local function fits(m, room, count)
    local q, r = muldiv(m.window, room + 1, count)
    if r == 0 then return q - 1 end
    return q
  end
  return {
    load = function(m, v, at) return load_window(m, v, at, 2) end,
    dump = dump_window,
    expiry = function(m) return m.t + 2 * m.window end,
    left = function(m) return m.quota - used(m) end,
    wait = function(m, cost)
      if used(m) + cost <= m.quota then return 0 end
      local t, a, b = turned(m)
      local room, e = m.quota - cost, now - t
      -- Where this window's hits alone are too many, the cost fits some time
      -- in the next one, in which they are those of the window before.
      if a > room then return 2 * m.window - e - fits(m, room, a) end
      return m.window - e - fits(m, room - a, b)
    end,
    charge = function(m, cost)
      if m.t then m.t, m.a, m.b = turned(m) else m.t, m.a, m.b = anchor(m), 0, 0 end
      m.a = m.a + cost
    end,
    refund = function(m, cost, at)
      if not m.t then return end
      if at >= m.t and at < m.t + m.window then
        m.a = math.max(0, m.a - cost)
      elseif at < m.t and at >= m.t - m.window then
        m.b = math.max(0, m.b - cost)
      end
    end,
  }
end

-- Bucketed window. Bucket k holds the hits of [k × precision, (k + 1) ×
-- precision); those of a window's full buckets and the running one count.
-- State: newest the last bucket's k, total the hits of all, n how many buckets,
-- then their counts, oldest first, from position from of the string src on.
make[BUCKETED] = function()
  local function count(m, i) return (unpack('<I4', m.src, m.from + 4 * (i - 1))) end
  local function last_needed(m) return floor(now / m.precision) - m.window / m.precision end
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
  return {
    load = function(m, v, at)
      local newest, total, n = unpack('<i7I4I2', v, at)
      if total > MOST or n > m.window / m.precision + 1 then return false end
      local k = floor(now / m.precision)
      -- A clock that was set back: the buckets keep their distances.
      if newest > k then newest, m.mended = k, true end
      m.newest, m.total, m.n, m.src, m.from = newest, total, n, v, at + 13
      trim(m)
      return true
    end,
    dump = function(m)
      if (m.n or 0) == 0 then return nil end
      return pack('<i7I4I2', m.newest, m.total, m.n) .. sub(m.src, m.from, m.from + 4 * m.n - 1)
    end,
    expiry = function(m) return (m.newest + 1) * m.precision + m.window end,
    left = function(m) return m.quota - (m.total or 0) end,
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
    charge = function(m, cost)
      local k = floor(now / m.precision)
      if (m.n or 0) == 0 then
        m.newest, m.total, m.n, m.src, m.from = k, cost, 1, pack('<I4', cost), 1
        return
      end
      m.total = m.total + cost
      if m.newest == k then return set(m, m.n, count(m, m.n) + cost) end
      m.src = sub(m.src, m.from, m.from + 4 * m.n - 1) .. rep('\0', 4 * (k - m.newest - 1)) .. pack('<I4', cost)
      m.from, m.n, m.newest = 1, m.n + k - m.newest, k
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
  }
end

-- Sliding log: the time of every hit. State: n how many, then the times, oldest
-- first, seven bytes each, from position from of the string src on. A cost of c
-- stands in it c times, so that the i-th oldest hit is found at once.
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
  local function part(m, i, j) return sub(m.src, m.from + 7 * (i - 1), m.from + 7 * j - 1) end
  return {
    load = function(m, v, at)
      m.n, m.src, m.from = unpack('<I2', v, at), v, at + 2
      if m.n > 0 and hit(m, m.n) > now then -- the clock was set back
        local n = upto(m, now)
        m.src, m.from, m.mended = part(m, 1, n) .. rep(pack('<i7', now), m.n - n), 1, true
      end
      if m.n > 0 and hit(m, 1) <= now - m.window then
        local gone = upto(m, now - m.window)
        m.n, m.from = m.n - gone, m.from + 7 * gone
      end
      return true
    end,
    dump = function(m)
      if (m.n or 0) == 0 then return nil end
      return pack('<I2', m.n) .. part(m, 1, m.n)
    end,
    expiry = function(m) return hit(m, m.n) + m.window end,
    left = function(m) return m.quota - (m.n or 0) end,
    wait = function(m, cost)
      local excess = (m.n or 0) + cost - m.quota
      if excess <= 0 then return 0 end
      return hit(m, excess) + m.window - now
    end,
    charge = function(m, cost)
      local hits = rep(pack('<i7', now), cost)
      if (m.n or 0) > 0 then hits = part(m, 1, m.n) .. hits end
      m.n, m.src, m.from = (m.n or 0) + cost, hits, 1
    end,
    refund = function(m, cost, at)
      if (m.n or 0) == 0 then return end
      local before, upto_at = upto(m, at - 1), upto(m, at)
      cost = math.min(cost, upto_at - before)
      m.src, m.from, m.n = part(m, 1, before) .. part(m, before + cost + 1, m.n), 1, m.n - cost
    end,
  }
end

-- Token bucket: the generic cell rate algorithm. A hit costs window / quota
-- microseconds, a fraction as a rule. What is owed is kept as q whole
-- microseconds and r parts of 1 / quota microsecond: (q, r) with r < quota.
-- State: the time now + q, r, and the quota that r is a part of.
make[TOKEN] = function()
  -- costs returns what n hits cost, as (q, r).
  local function costs(m, n) return muldiv(m.window, n, m.quota) end
  local function owe(m, q, r)
    if r >= m.quota then q, r = q + 1, r - m.quota end
    m.q, m.r = q, r
  end
  local function above(q, r, q2, r2) return q > q2 or q == q2 and r > r2 end
  -- over returns by how much what is owed is above (q, r), rounded up to whole
  -- microseconds; 0 where it is not.
  local function over(m, q, r)
    q = m.q - q
    if m.r > r then q = q + 1 end
    return math.max(0, q)
  end
  return {
    load = function(m, v, at)
      local t, r, quota = unpack('<i7I4I4', v, at)
      if quota < 1 or quota > MOST or r >= quota then return false end
      if m.quota == 0 then -- admits nothing, and forgets nothing
        m.kept, m.kept_until = sub(v, at, at + 14), t + 1
        return true
      end
      local q = t - now
      if q < 0 then return true end
      if quota ~= m.quota then -- the debt in hits stays what it was
        local whole, part = muldiv(q, quota, m.quota)
        q, r = muldiv(1, part + r, m.quota)
        q = whole + q
      end
      m.q, m.r = q, r
      local most_q, most_r = costs(m, m.capacity)
      if above(q, r, most_q, most_r) then -- the clock was set back, or the burst is less
        m.q, m.r, m.mended = most_q, most_r, true
      end
      return true
    end,
    dump = function(m)
      if m.kept then return m.kept end
      if not m.q or m.q == 0 and m.r == 0 then return nil end
      return pack('<i7I4I4', now + m.q, m.r, m.quota)
    end,
    expiry = function(m) return m.kept_until or now + m.q + 1 end,
    left = function(m)
      if not m.q then return m.capacity end
      -- ceil((q × quota + r) / window) hits are owed.
      local n, rest = muldiv(m.q, m.quota, m.window)
      return m.capacity - n - math.ceil((rest + m.r) / m.window)
    end,
    wait = function(m, cost)
      if not m.q then return 0 end
      return over(m, costs(m, m.capacity - cost))
    end,
    charge = function(m, cost)
      local q, r = costs(m, cost)
      owe(m, (m.q or 0) + q, (m.r or 0) + r)
    end,
    refund = function(m, cost, at, reset)
      -- A debt is paid off in the order in which it was made: of this charge
      -- nothing is owed any more once all that was owed then has been paid.
      local owed = at + reset - now
      if not m.q or owed <= 0 then return end
      local q, r = costs(m, cost)
      if above(q, r, owed, 0) then q, r = owed, 0 end
      if above(q, r, m.q, m.r) then q, r = m.q, m.r end
      q, r = m.q - q, m.r - r
      if r < 0 then q, r = q - 1, r + m.quota end
      m.q, m.r = q, r
    end,
  }
end

-- Lockout: a fixed window that ends early, with a wait that grows, when its
-- quota has been used up. State: t the window's start and a its hits, 0 where
-- there is none; b the waits that counted when the last one began, that one
-- included (strikes); u the end of that wait, from which strikes decay.
make[LOCKOUT] = function()
  -- length returns how long the wait after n others is.
  local function length(m, n)
    local d = m.first
    if m.factor == 1 then return d end
    for _ = 1, n do
      if d > floor(m.longest / m.factor) then return m.longest end
      d = d * m.factor
    end
    return math.min(d, m.longest)
  end
  -- levels returns from how many strikes on the wait is the longest.
  local function levels(m)
    local n = 1
    while m.factor > 1 and length(m, n - 1) < m.longest do n = n + 1 end
    return n
  end
  local function strikes(m)
    if now <= m.u then return m.b end
    return m.b - math.min(m.b, floor((now - m.u) / m.decay))
  end
  local function locked(m) return m.u and now < m.u end
  return {
    load = function(m, v, at)
      local t, a, b, u = unpack('<i7I4I4i7', v, at)
      if a > MOST or b > 64 then return false end
      local longest = length(m, math.max(b, 1) - 1)
      if t > now or u - now > longest then -- the clock was set back
        t, u, m.mended = math.min(t, now), math.min(u, now + longest), true
      end
      m.t, m.a, m.b, m.u = t, a, b, u
      if now < u then return true end
      if t < u or now >= t + m.window then m.t, m.a = 0, 0 end
      if strikes(m) == 0 then m.b, m.u = 0, 0 end
      return true
    end,
    dump = function(m)
      if not m.t or m.t == 0 and m.a == 0 and m.b == 0 and m.u == 0 then return nil end
      return pack('<i7I4I4i7', m.t, m.a, m.b, m.u)
    end,
    expiry = function(m)
      local last = m.u + m.b * m.decay
      if m.t ~= 0 or m.a ~= 0 then last = math.max(last, m.t + m.window) end
      return last
    end,
    left = function(m)
      if locked(m) then return 0 end
      return m.quota - (m.a or 0)
    end,
    wait = function(m, cost)
      if locked(m) then return m.u - now end
      if (m.a or 0) + cost <= m.quota then return 0 end
      return m.t + m.window - now
    end,
    charge = function(m, cost)
      if not m.t then m.t, m.a, m.b, m.u = 0, 0, 0, 0 end
      if m.t == 0 and m.a == 0 then m.t = now end
      m.a = m.a + cost
      if m.a >= m.quota then
        local before = strikes(m)
        m.u, m.b = now + length(m, before), math.min(before + 1, levels(m))
      end
    end,
    refund = function(m, cost, at)
      if not m.t or m.a == 0 or at < m.t or at >= m.t + m.window then return end
      m.a = math.max(0, m.a - cost)
      if locked(m) and m.a < m.quota then -- the wait ends, and its strike is taken back
        m.b, m.u = math.max(0, m.b - 1), 0
        if m.b > 0 then m.u = m.t end
      end
    end,
  }
end

local made = {}
local function algorithm(a)
  local t = made[a]
  if not t then
    t = make[a]()
    made[a] = t
  end
  return t
end

-- The value under a key is its version and then, for each limit that has a
-- state, its identity (kind, window and, of a bucketed window, precision) and
-- the state. A limit finds its state by its identity, so that limits can come,
-- go and change their quota.
local VERSION = '\1'

-- index returns where the state of each identity begins in v; nothing where v
-- is not such a value: what cannot be read as a whole counts as none.
local function index(v)
  local at, pos, size = {}, 2, #v
  if sub(v, 1, 1) ~= VERSION then return {} end
  while pos <= size do
    local a = floor(byte(v, pos) / 2)
    local state = pos + (a == BUCKETED and 13 or 7)
    local after = state + 15
    if a == LOCKOUT then
      after = state + 22
    elseif a == BUCKETED then
      if state + 12 > size then return {} end
      after = state + 13 + 4 * unpack('<I2', v, state + 11)
    elseif a == LOG then
      if state + 1 > size then return {} end
      after = state + 2 + 7 * unpack('<I2', v, state)
    elseif a > LOCKOUT then
      return {}
    end
    if after > size + 1 then return {} end
    at[sub(v, pos, state - 1)] = state
    pos = after
  end
  return at
end

-- meters_of returns a meter for each limit of an item, without states.
local function meters_of(spec)
  local meters, p = {}, 1
  while p <= #spec do
    local kind, window, precision, quota, capacity = unpack('<I1I6I6I4I4', spec, p)
    local a = floor(kind / 2)
    -- What comes later has its place made here: a table that grows is slow.
    meters[#meters + 1] = {
      algorithm = algorithm(a), aligned = kind % 2 == 1, window = window, precision = precision,
      quota = quota, capacity = capacity, identity = sub(spec, p, p + (a == BUCKETED and 12 or 6)),
      t = nil, a = nil, b = nil, waits = nil, mended = nil,
    }
    p = p + 21
    if a == LOCKOUT then
      local m = meters[#meters]
      m.first, m.factor, m.longest, m.decay = precision, unpack('<I4I6I6', spec, p)
      p = p + 16
    end
  end
  return meters
end

-- read returns the meters of an item with the states that are stored, and
-- whether anything is; nil and an error where the server gives one. A value of
-- a wrong type, or with a part that is wrong, counts as none: the next charge
-- replaces it.
local function read(key, spec)
  local meters, v = meters_of(spec), redis.pcall('GET', key)
  if not v then return meters, false end
  if type(v) == 'table' then
    if string.find(v.err, 'WRONGTYPE', 1, true) then return meters, true end
    return nil, v
  end
  local at = index(v)
  for j = 1, #meters do
    local m = meters[j]
    local state = at[m.identity]
    if state and not m.algorithm.load(m, v, state) then return meters_of(spec), true end
  end
  return meters, true
end

-- How many milliseconds from now the states of an item are needed, nil where
-- there are none.
local function lifetime(meters)
  local last
  for j = 1, #meters do
    local m = meters[j]
    if m.algorithm.dump(m) then last = math.max(last or 0, m.algorithm.expiry(m) - now) end
  end
  return last and math.ceil(last / 1000) + slack
end

-- write stores the states of an item; it returns the server's error, if any.
local function write(key, meters)
  local parts, last = { VERSION }, 0
  for j = 1, #meters do
    local m = meters[j]
    local state = m.algorithm.dump(m)
    if state then
      parts[#parts + 1] = m.identity
      parts[#parts + 1] = state
      last = math.max(last, m.algorithm.expiry(m) - now)
    end
  end
  local r
  if #parts == 1 then
    r = redis.pcall('DEL', key)
  else
    r = redis.pcall('SET', key, table.concat(parts), 'PX', math.ceil(last / 1000) + slack)
  end
  return type(r) == 'table' and r.err and r or nil
end

-- heal gives a state a lifetime that has lost it. One that has it is left
-- alone: requests that charge nothing do not keep a state alive.
local function heal(key, meters)
  if redis.call('PTTL', key) == -1 then redis.pcall('PEXPIRE', key, lifetime(meters) or slack) end
end

local function wait(m, cost)
  if cost == 0 then return 0 end
  if cost > m.capacity or m.quota == 0 then return -1 end
  return m.algorithm.wait(m, cost)
end

local reply = { ARGV[1], pack('<i8', now) }

if verb == 'reset' then
  redis.call('DEL', unpack_list(KEYS))
  return table.concat(reply)
end

local giving = verb == 'back' or verb == 'refund'
local items, admitted, arg = {}, true, 5
for i = 1, #KEYS do
  local key = KEYS[i]
  local spec, cost = ARGV[arg], tonumber(ARGV[arg + 1])
  arg = arg + 2
  local meters, stored = read(key, spec)
  if not meters then return stored end
  if giving then
    local at = tonumber(ARGV[arg])
    for j = 1, #meters do
      local m = meters[j]
      if m.quota > 0 then m.algorithm.refund(m, cost, at, tonumber(ARGV[arg + j])) end
    end
    arg = arg + 1 + #meters
  end
  for j = 1, #meters do
    local m = meters[j]
    m.waits = wait(m, cost)
    admitted = admitted and m.waits == 0
  end
  items[i] = { key = key, cost = cost, meters = meters, stored = stored }
end

local written = false
for i = 1, #items do
  local item = items[i]
  local charged, mended = verb == 'take' and admitted and item.cost > 0, false
  for j = 1, #item.meters do
    local m = item.meters[j]
    if charged then m.algorithm.charge(m, item.cost) end
    mended = mended or m.mended
  end
  if charged or item.stored and (mended or giving) then
    local err = write(item.key, item.meters)
    if err and written then
      return redis.error_reply('FLOODGATE some of several keys have been written: ' .. err.err)
    elseif err then
      return err
    end
    written = true
  elseif item.stored then
    heal(item.key, item.meters)
  end
  if verb ~= 'refund' then
    for j = 1, #item.meters do
      local m = item.meters[j]
      local left, reset = 0, 0
      if m.quota > 0 then left, reset = math.max(0, m.algorithm.left(m)), m.algorithm.wait(m, m.capacity) end
      reply[#reply + 1] = pack('<i8i8i8', left, reset, m.waits)
    end
  end
end
return table.concat(reply)
