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
