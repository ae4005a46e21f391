-- Makes the decisions of a call, in order. Each decision is one step for all limits of all its
-- keys. None fails, or charges anything, because of another.
--
-- The script is this file with the steps of the algorithms that the rules of a call use: the line of
-- a step, such as charge in brackets, becomes an if over the algorithms, with the code below the same
-- line of their files.
--
-- Package internal/meter has the same arithmetic, and names the sources of the formulas. The state
-- of a limit is in variables here, because making a table takes as long as reading a key.
--
-- KEYS   the names of the values, one for each item of each decision: an item is a key of a rule
-- ARGV   1  eight bytes that begin the reply (8), the milliseconds that a value is kept longer than
--           needed (4), the number of decisions (4), and for each decision
--             its verb (1), the number of bytes of its items (4), how many of KEYS come before
--             its own (4), the number of items (4), and the time in microseconds (8; -2^63: the server's)
--           and for each of its items
--             the place of the rule's limits in ARGV (4), and the cost (8); for BLOCK the length of
--             the block; for GRANT the number of hits; for REFUND then the time of the charge (8), and
--             for each limit the ResetAfter that the charge returned (8)
--        2… a rule: for how long a value that cannot be read denies its key (6), and for each
--           limit LIMIT: its kind (the algorithm's number × 2, + 1 if its windows are aligned to
--           the epoch), window, precision (of a calendar a hash of the zone), quota, capacity
--           (the burst of a token bucket, else the quota), 1 if no cost is denied, and three
--           numbers more, which the algorithm's file explains
-- Reply  a string: the eight bytes, and for each decision one byte
--          2  it failed: the length of the error's text (4) and the text
--          0  it was made, or more: 1 if a stored value could not be read, 4 if a limit denies
--             the cost, 8 if a stored time was a window or more ahead. TAKE to GRANT then have
--             the time of the decision (8), and for each item the end of its key's block (8; 0:
--             none), and for each limit its state after the decision, zeros if there is none, or
--             what the step answer makes of it
--
-- The caller's clock may be behind the one that has written a state. A stored time less than one
-- window ahead is believed: the decision is made at the stored time, and waits are counted from
-- now. If it is further ahead, the clock has been set back, and the time becomes now.
--
-- Times and counts are whole numbers below 2^53, which Lua keeps exactly; muldiv multiplies in
-- parts. Integers in strings are little-endian.
--
-- A value is a version byte and records: the length of what follows (3), the expiry (7), from which
-- the record means the same as none, a kind (1) and, of a limit, its window (6), the precision of a
-- bucketed window or the hash of a calendar's zone (6), and the state. Kind to precision are the
-- identity by which a limit finds its state. Records of others are kept until they expire: programs
-- with other limits count under the same name. A later format has other names.
local pack, unpack, pcall_redis = struct.pack, struct.unpack, redis.pcall
local floor, ceil, max, min, sub = math.floor, math.ceil, math.max, math.min, string.sub
local FIRST, LIMIT, LIMIT_SIZE, NUMBERS = 7, '<I7I6I4I4I1', 46, 22
local TAKE, CHARGE, GRANT, REFUND, BLOCK, RESET = 0, 2, 3, 4, 5, 6
local MOST = 2147483647 -- the largest quota, and so the largest count
local VERSION = '\2'
local BLOCKED = 126 -- kind of a record that denies its key until it expires
local MOST_BYTES = 4194304 -- a longer value is somebody else's, and is not read
local SOME_WRITTEN = 'FLOODGATE some of several keys have been written: ' -- and others have not
local NONE = string.rep('\0', 15) -- the answer of a limit without a state
--[functions]

local input, from = ARGV[1], 17 -- from: the place of a decision
local slack, decisions = unpack('<I4I4', input, 9)
local parts, said = { sub(input, 1, 8), nil, nil, nil }, 1 -- of the reply, and how many
local time = redis.call('TIME')
-- Of each item: its value as read ('': none; false: unreadable) and as it is to be written (false:
-- it is not), its lifetime (false: it stays), and whether records of others are in it.
local work = { nil, nil, nil, nil }

for _ = 1, decisions do
  local verb, bytes, first, size, now, items = unpack('<I1I4I4I4i8', input, from)
  from = items + bytes
  local by_server = now == -9223372036854775808
  if by_server then now = time[1] * 1000000 + time[2] end

  -- Decide, and work out what to write. A take charges each limit at once, because most takes are
  -- allowed. The decision begins again if a limit denies after another has been charged, or if a
  -- value cannot be read or has records of others.
  for w = 1, 4 * size, 4 do work[w], work[w + 3] = nil, nil end
  local again, part, err, charged, denied, unreadable, ahead -- again: why
  repeat
    local charges = (verb == TAKE or verb == CHARGE) and again ~= 'denied'
    part, again, charged, denied, unreadable, ahead = said + 1, false, false, 0, 0, 0
    parts[part] = '\0'
    local p = items
    for i = 1, verb == RESET and 0 or size do
      local key, w = KEYS[first + i], 4 * i - 3
      local place, cost, at
      place, cost, p = unpack('<I4i8', input, p)
      if verb == REFUND then at, p = unpack('<i8', input, p) end
      local rule, v = ARGV[place], work[w]
      if v == nil then
        v = pcall_redis('GETRANGE', key, '0', '4194304') -- MOST_BYTES as text, which is faster
        if type(v) == 'table' and not string.find(v.err, 'WRONGTYPE', 1, true) then
          err = v.err
          break
        end
        if type(v) == 'table' or #v > MOST_BYTES then v = false end
        work[w] = v
      end
      local stored, readable = v ~= '', v == '' or v and sub(v, 1, 1) == VERSION
      local changed = (at and cost > 0 or verb == GRANT) and stored
      -- Until when the key is blocked, the record that says so, the others' records, and when the
      -- last of all records expires.
      local blocked, block, others, last = 0, '', '', 0
      if readable and work[w + 3] then
        -- Put the rule's states in the order of its limits, and keep the records of others.
        local own, pos = {}, 2
        while pos <= #v do
          local length, expiry, kind = 0
          if pos + 10 <= #v then length, expiry, kind = unpack('<I3i7I1', v, pos) end
          local after = pos + 3 + length
          readable = length >= 8 and after <= #v + 1 and (kind ~= BLOCKED or length == 14)
          if not readable then break end
          local record, mine = sub(v, pos, after - 1), kind == BLOCKED
          local id = (floor(kind / 2) == 2 or floor(kind / 2) == 6) and 12 or 6
          for limit = FIRST, #rule, LIMIT_SIZE do
            if sub(record, 11, 11 + id) == sub(rule, limit, limit + id) then own[limit], mine = record, true end
          end
          if kind == BLOCKED then
            -- Further ahead, it is the time of a clock that has been set back.
            if expiry > max(now, blocked) and expiry - now < 2 * unpack('<I6', v, pos + 11) then
              blocked, block = expiry, record
            end
          elseif not mine and expiry + slack * 1000 > now then
            others, last = others .. record, max(last, expiry)
          end
          pos = after
        end
        v = VERSION
        for limit = FIRST, #rule, LIMIT_SIZE do v = v .. (own[limit] or '') end
      end
      local lasts = 0 -- how long a block is that begins now
      if not readable then -- it counts as none, or denies its key
        lasts = unpack('<I6', rule)
        v, unreadable, changed = '', 1, lasts > 0 and cost > 0 and verb <= CHARGE
        blocked, block, others, last = 0, '', '', 0
      end
      if verb == BLOCK then
        lasts, changed, blocked, block = cost, cost > 0 or stored, 0, ''
      end
      if lasts > 0 then blocked, block = now + lasts, pack('<I3i7I1I6', 14, now + lasts, BLOCKED, lasts) end
      if blocked > 0 and cost > 0 and verb < CHARGE then
        denied, again, charges = 4, charged and 'denied', false
        if again then break end
      end

      part = part + 1
      parts[part] = verb <= GRANT and pack('<i8', blocked) or ''
      local value, next, was = VERSION, 2, 0 -- was: when the last of the records read expires
      for limit = FIRST, #rule, LIMIT_SIZE do
        local identity, precision, quota, capacity, unlimited = unpack(LIMIT, rule, limit)
        local kind = identity % 256
        local window, aligned = (identity - kind) / 256, kind % 2 == 1
        local algorithm = (aligned and kind - 1 or kind) / 2
        local start = aligned and now - now % window or now -- of a window that begins now
        local t, a, b, q, r, rate, over, m = nil, 0, 0 -- the state: the algorithm's file names those it uses
        local x, y -- numbers of the limit, which the algorithm's file explains
        --[none]

        -- A rule's states are mostly in the order of its limits, and nothing else.
        local length, expires, of
        if next + 16 <= #v then length, expires, of = unpack('<I3i7I7', v, next) end
        local state = next + 17
        if algorithm == 2 or algorithm == 6 then -- the identity is longer
          if sub(v, state, state + 5) ~= sub(rule, limit + 7, limit + 12) then of = nil end
          state = state + 6
        end
        if of == identity then
          was = max(was, expires)
          next = next + 3 + length
          local good, moved, bytes = true, false, next <= #v + 1 and next - state or 0 -- of the state
          --[load]
          if not good then
            work[w], again = false, 'unreadable'
            break
          end
          if moved then ahead, changed = 8, true end
        elseif v ~= '' and not work[w + 3] then
          work[w + 3], again = true, 'others'
          break
        end

        if at then
          local reset
          reset, p = unpack('<i8', input, p)
          if cost > 0 then
            --[refund]
          end
        elseif verb == GRANT and cost > 0 then
          local given = min(cost, MOST)
          --[grant]
        end
        if cost > 0 and unlimited == 0 and verb < CHARGE then
          local left
          --[left]
          if left < cost then
            denied, again, charges = 4, charged and 'denied', false
          end
        end
        if again then break end
        if charges and cost > 0 then
          local cost = cost < MOST and cost or MOST
          charged = true
          --[charge]
        end

        local record, expiry
        --[dump]
        if record then value, last = value .. record, max(last, expiry) end
        if verb <= GRANT then
          local answer = record and sub(record, -15) or NONE
          --[answer]
          part = part + 1
          parts[part] = answer
        end
      end
      if v ~= '' and not work[w + 3] and next ~= #v + 1 then work[w + 3], again = true, 'others' end
      if again or err then break end

      changed = changed or charges and cost > 0
      work[w + 1] = changed and value .. block .. others
      -- The lifetime by the server's clock is right as long as the last expiry is the same.
      local stays = last == was and by_server and blocked == 0 and not work[w + 3] and #value == #v
      work[w + 2] = not stays and max(1, ceil((max(last, blocked) - now) / 1000) + slack)
    end
  until err or not again

  -- Write what has changed.
  local written = ''
  for i = 1, err and 0 or size do
    local key, w, r = KEYS[first + i], 4 * i - 3, nil
    local value, lifetime = verb == RESET and VERSION or work[w + 1], work[w + 2]
    if value and #value == 1 then
      r = pcall_redis('DEL', key)
    elseif value and lifetime then
      r = pcall_redis('SET', key, value, 'PX', string.format('%d', lifetime))
    elseif value then
      r = pcall_redis('SETRANGE', key, '0', value)
    end
    if type(r) == 'table' and r.err then
      err = written .. r.err
      break
    end
    if value then written = SOME_WRITTEN end
  end

  if err then
    part = said + 1
    parts[part] = pack('<I1I4', 2, #err) .. err
  elseif verb <= GRANT then
    parts[said + 1] = pack('<I1i8', denied + unreadable + ahead, now)
  end
  said = part
end
return table.concat(parts, '', 1, said)
