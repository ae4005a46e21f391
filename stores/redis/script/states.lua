local made = {}
local function algorithm(a)
  local t = made[a]
  if not t then
    t = make[a]()
    made[a] = t
  end
  return t
end

-- A value is a version byte and records. A record is its length (3 bytes, of
-- what follows), its expiry (7 bytes, the time from which it means the same as
-- none), and a kind (1 byte). The record of a limit that has a state goes on
-- with its window and, of a bucketed window, precision, and of a calendar a hash of
-- the zone, which with the kind are its identity, and with the state. So a limit
-- finds its state, and limits can come, go and change their quota.
--
-- Records of others, of whatever kind, are kept until they have expired: another
-- program, or another version of this one, counts under the same name.
local VERSION, NEWEST = 2, 15 -- the versions between are of newer programs
local USED_UP = 126 -- kind of a record that denies its key until it expires
local MOST_FOREIGN, MOST_FOREIGN_BYTES = 32, 262144
-- A record of another program says itself when it expires, by that program's clock.
-- No clock that is less than one window ahead writes a time later than three windows
-- ahead of now, for the kinds whose windows are read; and no program one later than
-- LONGEST_LIFE. A record that expires later is from a clock that was wrong, or
-- damaged: its expiry is cut to that, so that no value is kept for ever.
local MOST_WINDOW, LONGEST_LIFE = 31622400000000, 3185222400000000
-- No program writes a longer value than this: MOST_VALUE covers what it keeps of
-- others, and the states of its own that another program may have, MOST_STATE
-- each state of this rule. A longer value is somebody else's, and is not read.
local MOST_VALUE, MOST_STATE = 1048576, 81920

-- meters_of returns a meter for each limit of an item, without states, and
-- whether a value that cannot be read denies its key.
local function meters_of(spec)
  local meters, p = {}, 1
  while p + 20 <= #spec do
    local kind, window, precision, quota, capacity = unpack('<I1I6I6I4I4', spec, p)
    local a, unlimited = floor(kind / 2), quota > MOST
    -- What comes later has its place made here: a table that grows is slow.
    meters[#meters + 1] = {
      number = a, algorithm = algorithm(a), aligned = kind % 2 == 1, window = window, precision = precision,
      quota = unlimited and quota - MOST - 1 or quota, unlimited = unlimited, capacity = capacity,
      identity = sub(spec, p, p + ((a == BUCKETED or a == CALENDAR) and 12 or 6)),
      t = nil, a = nil, b = nil, waits = nil, mended = nil, lease = nil, own_quota = nil, own_capacity = nil, over = nil,
    }
    p = p + 21
    if a == LOCKOUT then
      local m = meters[#meters]
      m.first, m.factor, m.longest, m.decay = precision, unpack('<I4I6I6', spec, p)
      p = p + 16
    elseif a == TOKEN then
      local m = meters[#meters]
      m.own_quota, m.own_capacity = m.quota, capacity
      if precision > 0 then m.quota, m.capacity = precision - 1, capacity_with(m, precision - 1) end
    end
    if a == CALENDAR then
      local m, opens = meters[#meters], unpack('<i7', spec, p)
      for edge = p + 7, p + 15, 4 do
        local closes = opens + unpack('<I4', spec, edge) * 1000000
        if now >= opens and now < closes then m.opens, m.closes = opens, closes end
        opens = closes
      end
      p = p + 19
    end
    if a == IN_FLIGHT then meters.in_flight = meters[#meters] end
  end
  return meters, p <= #spec
end

-- fits reports whether the state between two positions is as long as it says.
local function fits(m, v, at, after)
  local size = after - at
  if m.number == LOCKOUT then return size == 22 end
  if m.number == BUCKETED then return size >= 13 and size == 13 + 4 * unpack('<I2', v, at + 11) end
  if m.number == LOG then return size >= 2 and size == 2 + 7 * unpack('<I2', v, at) end
  if m.number == IN_FLIGHT then return size >= 2 and size == 2 + 19 * unpack('<I2', v, at) end
  return size == 15
end

-- parse reads a value into an item; false if any part of it is malformed.
local function parse(item, v)
  local pos, size, meters, next = 2, #v, item.meters, 1
  if byte(v, 1) ~= VERSION then return false end
  while pos <= size do
    if pos + 10 > size then return false end
    local length, expiry, kind = unpack('<I3i7I1', v, pos)
    local after, mine = pos + 3 + length, meters[next]
    if length < 8 or after > size + 1 then return false end
    -- A rule's states are in the order of its limits, unless others come between.
    if mine and sub(v, pos + 10, pos + 9 + #mine.identity) == mine.identity then
      next = next + 1
    else
      mine = nil
      local identity = sub(v, pos + 10, pos + 10 + ((floor(kind / 2) == BUCKETED or floor(kind / 2) == CALENDAR) and 12 or 6))
      for j = 1, #meters do
        if meters[j].identity == identity then mine, next = meters[j], j + 1 end
      end
    end
    if mine then
      local at = pos + 10 + #mine.identity
      if not fits(mine, v, at, after) or not mine.algorithm.load(mine, v, at) then return false end
    elseif kind == USED_UP then
      if length ~= 14 then return false end
      -- Further ahead, it is the time of a clock that has been set back.
      if expiry > now and expiry - now < 2 * unpack('<I6', v, pos + 11) then
        item.used_up = max(item.used_up or 0, expiry)
        item.foreign[#item.foreign + 1] = { expiry, sub(v, pos, after - 1), true }
      end
    elseif expiry + slack * 1000 > now then
      local record, life = sub(v, pos, after - 1), LONGEST_LIFE
      if kind < 2 * TOKEN and length >= 14 then
        local window = unpack('<I6', v, pos + 11)
        if window <= MOST_WINDOW then life = 3 * window end
      end
      if expiry - now > life then
        expiry = now + life
        record = pack('<I3i7', length, expiry) .. sub(record, 11)
      end
      item.foreign[#item.foreign + 1] = { expiry, record }
    end
    pos = after
  end
  return true
end

local unreadable -- a value could not be read; make_decision says so at its beginning

-- used_up returns a record that denies its key for this length of time.
local function used_up(length)
  return { now + length, pack('<I3i7I1I6', 14, now + length, USED_UP, length), true }
end

-- deny begins the time for which a value that cannot be read denies its key: the
-- shortest window. The value of a newer program is left as it is.
local function deny(item)
  local length = item.meters[1].window
  for j = 2, #item.meters do length = math.min(length, item.meters[j].window) end
  item.used_up = now + length
  if not item.newer then
    item.mark = true
    item.foreign = { used_up(length) }
  end
end

-- read returns an item with the states that are stored; nil and an error's text if
-- the server gives one.
local function read(key, spec)
  local meters, denies = meters_of(spec)
  local item = { key = key, meters = meters, foreign = {}, stored = false, used_up = nil, at = now, cost = nil }
  local most = MOST_VALUE + MOST_STATE * #meters
  local v = pcall_redis('GETRANGE', key, '0', most)
  if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return nil, v.err end
    v = ''
  elseif v == '' and absent(key) then
    return item
  elseif #v > most then
    v = ''
  end
  item.stored = true
  if not parse(item, v) then
    item.meters, item.foreign, item.used_up = meters_of(spec), {}, nil
    local version = byte(v, 1) or 0
    item.newer, item.unreadable, unreadable = version > VERSION and version <= NEWEST, true, true
    if item.newer or denies then deny(item) end
  end
  return item
end

-- kept returns the records of others that a write keeps: of too many, those that
-- expire last.
local function kept(item)
  local foreign, bytes = item.foreign, 0
  for j = 1, #foreign do bytes = bytes + #foreign[j][2] end
  if #foreign <= MOST_FOREIGN and bytes <= MOST_FOREIGN_BYTES then return foreign end
  table.sort(foreign, function(a, b) return a[1] > b[1] end)
  local some = {}
  bytes = 0
  for j = 1, math.min(#foreign, MOST_FOREIGN) do
    bytes = bytes + #foreign[j][2]
    if bytes <= MOST_FOREIGN_BYTES then some[#some + 1] = foreign[j] end
  end
  return some
end

-- lifetime returns how many milliseconds from now the value of an item is
-- needed, nil if it has nothing.
local function lifetime(item)
  local last
  for j = 1, #item.meters do
    local m = item.meters[j]
    if m.algorithm.dump(m) then last = max(last or 0, m.algorithm.expiry(m)) end
  end
  for j = 1, #item.foreign do last = max(last or 0, item.foreign[j][1]) end
  return last and max(1, ceil((last - now) / 1000) + slack)
end

-- write stores an item; it returns the text of the server's error, if any.
local function write(item)
  local parts, last = { string.char(VERSION) }, 0
  for j = 1, #item.meters do
    local m = item.meters[j]
    local state = m.algorithm.dump(m)
    if state then
      local expiry = m.algorithm.expiry(m)
      parts[#parts + 1] = pack('<I3i7', 7 + #m.identity + #state, expiry)
      parts[#parts + 1] = m.identity
      parts[#parts + 1] = state
      last = max(last, expiry)
    end
  end
  if #item.foreign > 0 then
    local foreign = kept(item)
    for j = 1, #foreign do
      parts[#parts + 1] = foreign[j][2]
      last = max(last, foreign[j][1])
    end
  end
  local r
  if #parts == 1 then
    r = pcall_redis('DEL', item.key)
  else
    r = pcall_redis('SET', item.key, table.concat(parts), 'PX', max(1, ceil((last - now) / 1000) + slack))
  end
  return error_of(r)
end

-- heal gives a value a lifetime that has lost it. One that has it is left alone:
-- requests that charge nothing do not keep a value alive. It returns the text of the
-- error if the server does not tell the lifetime.
local function heal(item)
  local left = pcall_redis('PTTL', item.key)
  if left == -1 then pcall_redis('PEXPIRE', item.key, lifetime(item) or slack) end
  return error_of(left)
end
