-- The commonest decision, without the machinery below: a take from keys with up to
-- four sliding or fixed windows each, which admit it. It does what the machinery
-- does, to the unit and the byte; all else, such as a denial or the states of other
-- limits under the same key, is left to that. Nothing that it does not need is
-- made before it: each function takes time. A number that is an argument of a
-- command is written as text, which is faster.
local plans = {}

-- plan_of returns the windows at a place of ARGV: how many, the end of what is read
-- of their value, and for each its kind, window and quota. It returns false if there
-- are others among them.
local function plan_of(place)
  local plan, specs = false, ARGV[place]
  local n = (#specs - #specs % 21) / 21
  if #specs < 86 then
    -- One byte more than is read, so that a longer value is noticed.
    plan = { n, n == 1 and '33' or n == 2 and '65' or n == 3 and '97' or '129' }
    for p = 1, 21 * n, 21 do
      local kind, window, _, quota = unpack('<I1I6I6I4', specs, p)
      if kind >= 2 * BUCKETED then
        plan = false
        break
      end
      local i = #plan
      plan[i + 1], plan[i + 2], plan[i + 3] = kind, window, quota
    end
  end
  plans[place] = plan
  return plan
end

-- charged returns the value of a key after a charge, how many milliseconds it is
-- needed, the time of the decision and its results; nil if the windows do not admit
-- the cost, or something needs the machinery.
local function charged(key, place, cost)
  local plan = plans[place]
  if plan == nil then plan = plan_of(place) end
  if not plan or cost <= 0 then return nil end
  local n, v = plan[1], pcall_redis('GETRANGE', key, '0', plan[2])
  local none = v == '' and absent(key)
  if not none and (type(v) ~= 'string' or #v ~= 1 + 32 * n) then return nil end
  local at, longest, records, results = now, 0, '\2', nil
  for i = 0, n - 1 do
    local kind, window, quota = plan[3 * i + 3], plan[3 * i + 4], plan[3 * i + 5]
    local sliding = kind < 2 * FIXED
    local first = kind % 2 == 1 and now - now % window or now -- the start of a window that opens now
    local t, a, b = first, 0, 0
    if not none then
      local version, length, _, k, w, start, cur, prev = unpack('<I1I3i7I1I6i7I4I4', v, 32 * i + 1)
      if i == 0 and version ~= 2 or length ~= 29 or k ~= kind or w ~= window or start - now >= window or cur > MOST or prev > MOST then return nil end
      if now < start + window then
        t, a, b = start, cur, prev
      elseif sliding and now < start + 2 * window then
        t, b = start + window, cur
      end
    end
    local weighed = 0
    if t > now then
      if t > at then at = t end
      if sliding and b > 0 then weighed = b * window end
    elseif sliding and b > 0 then
      weighed = b * (window - (now - t))
    end
    local before = (weighed - weighed % window) / window
    if weighed >= 9007199254740992 or a + before + cost > quota then return nil end
    a = a + cost
    local last = t + window
    local reset = last - now
    local more = reset
    if sliding then
      last = last + window
      reset = last - now - (window - 1 - (window - 1) % a) / a
      -- One hit less of this window counts one unit after its end. Before
      -- that, so does one hit less of the window before, if it counts.
      more = last - window + 1 - now
      if before > 0 then
        local p = before * window -- at most weighed, and so exact
        more = last - window - now - ((p - 1) - (p - 1) % b) / b
      end
    end
    if last > longest then longest = last end
    records = records .. pack('<I3i7I1I6i7I4I4', 29, last, kind, window, t, a, b)
    local said = pack('<i8i8i8i8', quota - a - before, reset, more, 0)
    results = results and results .. said or said
  end
  return records, ceil((longest - now) / 1000) + slack, at, results
end

local function set(key, value, lifetime) return error_of(pcall_redis('SET', key, value, 'PX', lifetime)) end

-- charge_all is the take of several keys: the reply, or nil.
local function charge_all(items, p)
  local values, lifetimes, said = {}, {}, { '\0' }
  for i = 1, items do
    local place, cost, after = unpack('<I4i8', input, p)
    local value, lifetime, at, results = charged(KEYS[first_key + i - 1], place, cost)
    if not value then return nil end
    values[i], lifetimes[i], said[2 * i], said[2 * i + 1], p = value, lifetime, pack('<i8', at), results, after
  end
  for i = 1, items do
    local err = set(KEYS[first_key + i - 1], values[i], lifetimes[i])
    if err and i > 1 then return failed(SOME_WRITTEN .. err) end
    if err then return failed(err) end
  end
  return table.concat(said)
end

-- short makes the next decision, if it can; else it returns false.
local function short()
  local verb, size, items, p = begin()
  local reply
  if verb == TAKE and items == 1 then
    local place, cost = unpack('<I4i8', input, p)
    local value, lifetime, at, results = charged(KEYS[first_key], place, cost)
    if not value then return false end
    local err = set(KEYS[first_key], value, lifetime)
    reply = err and failed(err) or pack('<I1i8', 0, at) .. results
  elseif verb == TAKE then
    reply = charge_all(items, p)
  elseif verb == SKIP then
    reply = '\3'
  end
  if not reply then return false end
  finish(reply, size, items)
  return true
end

while number <= count and short() do end
if number > count then return table.concat(replies) end
