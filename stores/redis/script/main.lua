-- Makes decisions on hits and counts the hits. Each decision is made in one step,
-- for all limits of all its keys. The decisions of one call are made in order, and
-- independently: none fails, or charges anything, because of another one.
--
-- The script is put together from this file and those of the algorithms that the rules of a
-- call use. The line of a step, such as --[charge], becomes what the files of the algorithms
-- have below a line --[charge], each for a meter m of its algorithm:
--
--   if m is of the first then … elseif m is of the second then … end
--
-- There are hardly any functions, because to make one takes as long as to read a key.
--
-- KEYS   the names of the values, for each decision one for each of its items: an
--        item is one key of one rule, with the limits of that rule
-- ARGV   1  eight bytes that begin the reply (8), the milliseconds that a value is
--           kept longer than it is needed (4), the number of decisions (4), and
--           for each decision
--             its verb (1) and the number of bytes of its items (4)
--             the number of items (4)
--             the time in microseconds since the Unix epoch; 0: the server's (8)
--           and for each of its items
--             the place of the rule's limits in ARGV (4)
--             the cost (8); for BLOCK: how long it denies the key; for GRANT: how many hits
--             the lease that the decision gives, gives back, ends or renews; 0: none (8)
--             for BACK and REFUND: the time of the charge (8), and for each limit
--             the time until all was free again, as that take returned it (8)
--           A decision that is not to be made, SKIP, has names, but no items here.
--        2… a rule: 1 if a value that cannot be read denies its key, else 0 (1), and for
--           each limit LIMIT: its kind (the algorithm's number × 2, + 1 if its windows are
--           aligned to the epoch), window, precision (of a calendar a hash of the zone),
--           quota, capacity (the burst of a token bucket, else the quota), 1 if no cost is
--           denied, and three numbers, which the algorithm's file explains
-- Reply  a string: the eight bytes, and for each decision one byte
--          2  it failed: the length of the error's text (4) and the text
--          3  it was skipped
--          0  it was made, or more: 1 if a stored value could not be read, 4 if a limit denies
--             the cost, 8 if a stored time was a window or more ahead. For a take, a peek, a
--             charge, a grant and BACK there follow the time of the decision (8), and for each
--             item until when its key is blocked (8; 0 for not), and of each limit the state
--             after the decision, or what follows from it: see --[answer]
--
-- The caller's clock may be behind the one that has written a state. A stored
-- time less than one window ahead is believed: the decision is made at the
-- stored time, and waits are counted from now. One window ahead or more, only a
-- step of the clock explains it, and the time is moved back to now.
--
-- Times and counts are whole numbers. A number of Lua is exact below 2^53,
-- which every time and every count is; where a product may be above, muldiv
-- works in parts. Integers in strings are little-endian.
--
-- A value is a version byte and records. A record is its length (3 bytes, of what follows),
-- its expiry (7 bytes, the time from which it means the same as none), and a kind (1 byte).
-- The record of a limit goes on with its window and, of a bucketed window, precision, and of
-- a calendar a hash of the zone, which with the kind are its identity, and with the state.
-- So a limit finds its state, and limits can come, go and change their quota.
--
-- Records of others, of whatever kind, are kept until they have expired: another
-- program, or another version of this one, counts under the same name.
local list, pack, unpack, pcall_redis = unpack, struct.pack, struct.unpack, redis.pcall
local floor, ceil, max, min, sub, byte = math.floor, math.ceil, math.max, math.min, string.sub, string.byte
local LIMIT, LIMIT_SIZE = '<I1I6I6I4I4I1i8i8i8', 46
local SKIP, TAKE, CHARGE, GRANT, BACK, REFUND, BLOCK, RELEASE, RENEW, RESET = 0, 1, 3, 4, 5, 6, 7, 8, 9, 10
local MOST = 2147483647 -- the largest quota, and so the largest count
local VERSION, NEWEST = 2, 15 -- the versions between are of newer programs
local BLOCKED = 126 -- kind of a record that denies its key until it expires
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
-- What begins the error of a decision that has been made in part, and what ends another.
local SOME_WRITTEN = 'FLOODGATE some of several keys have been written: '
local NEWER = ': the stored value has the format of a later version, which this one does not replace'
local NONE = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' -- the answer of a limit without a state
--[functions]

local input = ARGV[1]
local slack, decisions = unpack('<I4I4', input, 9)
local parts, said = { sub(input, 1, 8) }, 1 -- of the reply, and how many
local rules = {} -- the meters of the rules that have been read, to be used again
local server -- the server's time
local first_key, from = 1, 17 -- of the decision: its first name in KEYS, and its place in input

for _ = 1, decisions do
  local verb, bytes, size, now, p = unpack('<I1I4I4i8', input, from)
  from = p + bytes
  if now == 0 and verb ~= SKIP then
    if not server then
      local t = redis.call('TIME')
      server = t[1] * 1000000 + t[2]
    end
    now = server
  end
  local items, of_key, err, written = {}, (verb == RELEASE or verb == RENEW) and {}, nil, ''
  local denied, unreadable, ahead = 0, 0, 0

  -- Read the items, change them if something is given back, and decide.
  for i = 1, (verb == SKIP or verb == RESET) and 0 or size do
    local key, place, cost, lease = KEYS[first_key + i - 1]
    place, cost, lease, p = unpack('<I4i8c8', input, p)
    local item = of_key and of_key[key] -- only leases have several items with a key
    if not item then
      item = rules[place * 65536 + i]
      if not item then
        -- An item is a table of its meters. What is added later has its place made here: a
        -- table that grows is slow.
        local rule = ARGV[place]
        item = { nil, key = nil, cost = nil, blocked = nil, stored = nil, changed = nil, foreign = nil }
        for at = 2, #rule, LIMIT_SIZE do
          local kind, window, precision, quota, capacity, unlimited, x, y, z = unpack(LIMIT, rule, at)
          local algorithm = floor(kind / 2)
          local m = {
            algorithm = algorithm, aligned = kind % 2 == 1, window = window, quota = quota, capacity = capacity, unlimited = unlimited == 1,
            identity = sub(rule, at, at + ((algorithm == 2 or algorithm == 6) and 12 or 6)),
            loaded = nil, ahead = nil, t = nil, a = nil, b = nil,
          }
          if algorithm > 1 then m.precision, m.x, m.y, m.z = precision, x, y, z end
          if algorithm == 7 then item.leases = m end
          item[#item + 1] = m
        end
        if decisions > 1 then rules[place * 65536 + i] = item end
      end
      items[#items + 1] = item
      if of_key then of_key[key] = item end
      item.key, item.cost, item.blocked, item.stored, item.changed, item.foreign = key, cost, 0, true, false, nil
      item.block, item.unreadable, item.newer, item.marked = nil, nil, nil, nil
      for j = 1, #item do item[j].loaded, item[j].ahead = false, false end

      -- Read the value.
      local most = MOST_VALUE + MOST_STATE * #item
      local v = pcall_redis('GETRANGE', key, '0', most)
      if type(v) == 'table' then
        if not string.find(v.err, 'WRONGTYPE', 1, true) then
          err = v.err
          break
        end
        v = ''
      elseif v == '' then -- an empty value is somebody else's
        item.stored = pcall_redis('PTTL', key) ~= -2
      elseif #v > most then
        v = ''
      end
      local good, pos, next = not item.stored or byte(v, 1) == VERSION, 2, 1
      while good and pos <= #v do
        good = pos + 10 <= #v
        if not good then break end
        local length, expiry, kind = unpack('<I3i7I1', v, pos)
        local after, at = pos + 3 + length, pos + ((floor(kind / 2) == 2 or floor(kind / 2) == 6) and 23 or 17)
        local identity, m = sub(v, pos + 10, at - 1), item[next]
        -- A rule's states are in the order of its limits, unless others come between.
        for j = 1, m and m.identity == identity and 0 or #item do
          if item[j].identity == identity then m, next = item[j], j end
        end
        good = length >= 8 and after <= #v + 1
        if not good then
          break
        elseif m and m.identity == identity then
          next, m.loaded = next + 1, true
          --[load]
        elseif kind == BLOCKED then
          good = length == 14
          -- Further ahead, it is the time of a clock that has been set back.
          if good and expiry > now and expiry - now < 2 * unpack('<I6', v, pos + 11) then
            item.blocked, item.foreign = max(item.blocked, expiry), item.foreign or {}
            item.foreign[#item.foreign + 1] = { expiry = expiry, record = sub(v, pos, after - 1), blocks = true }
          end
        elseif expiry + slack * 1000 > now then
          local record, life, window = sub(v, pos, after - 1), LONGEST_LIFE, nil
          if kind < 8 and length >= 14 then
            window = unpack('<I6', v, pos + 11)
            if window <= MOST_WINDOW then life = 3 * window end
          end
          if expiry - now > life then
            expiry = now + life
            record = pack('<I3i7', length, expiry) .. sub(record, 11)
          end
          item.foreign = item.foreign or {}
          item.foreign[#item.foreign + 1] = { expiry = expiry, record = record }
        end
        pos = after
      end
      if not good then
        -- It counts as none, or denies its key for the shortest window. That of a newer program
        -- denies its key, too, and is left as it is.
        local version = byte(v, 1) or 0
        unreadable, item.unreadable, item.foreign, item.blocked = 1, true, nil, 0
        item.newer = version > VERSION and version <= NEWEST
        item.marked = not item.newer and byte(ARGV[place], 1) == 1
        if item.newer or item.marked then
          local shortest = MOST_WINDOW
          for j = 1, #item do shortest = min(shortest, item[j].window) end
          item.block, item.blocked = shortest, now + shortest
        end
      end
      for j = 1, #item do
        local m = item[j]
        if not good or not m.loaded then
          m.ahead = false
          --[none]
        end
      end
    end

    if err then break end
    local at, reset
    if item.leases then item.leases.lease = lease end
    if item.newer and (verb == BLOCK or (verb == CHARGE or verb == GRANT) and cost > 0) then
      err = 'FLOODGATE newer: ' .. key .. NEWER
      break
    elseif verb == BLOCK then
      for j = item.foreign and #item.foreign or 0, 1, -1 do
        if item.foreign[j].blocks then table.remove(item.foreign, j) end
      end
      item.changed, item.block = cost > 0 or item.stored, cost > 0 and cost
    elseif of_key then
      local m, changed = item.leases, false
      if m and not item.newer and not item.marked then -- else it stays as it is
        if verb == RELEASE then
          --[release]
        elseif cost > 0 then
          --[renew]
        end
      end
      item.changed = item.changed or changed
    else
      if verb == BACK or verb == REFUND then at, p = unpack('<i8', input, p) end
      item.changed = (at or verb == GRANT) and item.stored and not item.unreadable
      if item.marked and cost > 0 and not at and verb ~= GRANT then item.changed = true end
      for j = 1, #item do
        local m = item[j]
        if at then reset, p = unpack('<i8', input, p) end
        if at and cost > 0 then
          --[refund]
        elseif verb == GRANT and cost > 0 then
          local n = min(cost, MOST)
          --[grant]
        end
        if m.ahead then ahead, item.changed = 8, true end
        if cost > 0 and verb <= BACK and verb ~= CHARGE and verb ~= GRANT and not m.unlimited then
          local left
          --[left]
          if m.quota == 0 or left < cost then denied = 4 end
        end
      end
      if verb == GRANT then item.cost = 0 end
      if item.blocked > 0 and item.cost > 0 and verb ~= CHARGE then denied = 4 end
    end
  end

  -- Charge all limits, before any of them is written.
  if not err and (verb == CHARGE or verb == TAKE and denied == 0) then
    for i = 1, #items do
      local item = items[i]
      local cost = min(item.cost, MOST)
      item.changed = item.changed or cost > 0
      for j = 1, cost > 0 and #item or 0 do
        local m = item[j]
        --[charge]
      end
    end
  end

  -- Write what has changed, and reply.
  local made, part = verb <= BACK, said + 1
  parts[part] = made and pack('<I1i8', denied + unreadable + ahead, now) or '\0'
  for i = 1, err and 0 or #items do
    local item = items[i]
    local key, changed, foreign, heals = item.key, item.changed, item.foreign, false
    if not changed and item.stored and not item.newer and verb <= REFUND then
      -- A value that has lost its lifetime gets one. A lifetime is left alone: requests that
      -- charge nothing do not keep a value alive.
      local left = pcall_redis('PTTL', key)
      if type(left) == 'table' then
        err = written .. left.err
        break
      end
      heals = left == -1
      changed = heals
    end
    local value, last = '\2', 0
    part = part + 1
    parts[part] = made and pack('<i8', item.blocked) or ''
    for j = 1, #item do
      local m, cost, state, expiry = item[j], item.cost, nil, nil
      --[dump]
      if state and changed then
        value = value .. pack('<I3i7', 7 + #m.identity + #state, expiry) .. m.identity .. state
        last = max(last, expiry)
      end
      if made then
        local answer = state or NONE
        --[answer]
        part = part + 1
        parts[part] = answer
      end
    end
    if item.block and changed then
      foreign = foreign or {}
      foreign[#foreign + 1] = { expiry = now + item.block, record = pack('<I3i7I1I6', 14, now + item.block, BLOCKED, item.block) }
    end
    if foreign and changed then -- of too many, those that expire last
      local size = 0
      for j = 1, #foreign do size = size + #foreign[j].record end
      if #foreign > MOST_FOREIGN or size > MOST_FOREIGN_BYTES then
        table.sort(foreign, function(a, b) return a.expiry > b.expiry end)
      end
      size = 0
      for j = 1, min(#foreign, MOST_FOREIGN) do
        size = size + #foreign[j].record
        if size <= MOST_FOREIGN_BYTES then value, last = value .. foreign[j].record, max(last, foreign[j].expiry) end
      end
    end
    local lifetime = max(1, ceil((last - now) / 1000) + slack)
    if heals then
      pcall_redis('PEXPIRE', key, #value > 1 and lifetime or slack)
    elseif changed then
      local r
      if #value > 1 then
        r = pcall_redis('SET', key, value, 'PX', lifetime)
      else
        r = pcall_redis('DEL', key)
      end
      if type(r) == 'table' and r.err then
        err = written .. r.err
        break
      end
      written = SOME_WRITTEN
    end
  end

  for i = first_key, verb == RESET and first_key + size - 1 or 0, 1000 do -- a function takes some thousands of arguments at most
    local r = pcall_redis('DEL', list(KEYS, i, min(i + 999, first_key + size - 1)))
    if type(r) == 'table' then err = err or r.err end
  end
  if verb == SKIP then
    parts[part] = '\3'
  elseif err then
    part = said + 1
    parts[part] = pack('<I1I4', 2, #err) .. err
  end
  said, first_key = part, first_key + size
end
return table.concat(parts, '', 1, said)
