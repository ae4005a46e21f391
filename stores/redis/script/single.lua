-- Makes the decisions, the commonest of them without the machinery above: takes from
-- keys with up to four sliding or fixed windows each, which admit them. It does what
-- the machinery does, to the unit and the byte; all else, such as a denial or the
-- states of other limits under the same key, is left to that. It has no functions,
-- because to make one takes time, and so does a table or a string: Lua reads each
-- byte of each string that is made, so that all numbers of a string are packed at
-- once.
local ceil, pack, unpack, pcall_redis, list = math.ceil, struct.pack, struct.unpack, redis.pcall, unpack
local MOST, FIXED, BUCKETED, SKIP, TAKE = 2147483647, 1, 2, 0, 1 -- as in meter.lua
local FIRST, NEXT = '<I4i7I7i7I4I4', '<I3i7I7i7I4I4' -- a value's version and first record, and a record
local input = ARGV[1]
local slack, count = unpack('<I4I4', input, 9)
-- plans are the windows at a place of ARGV, false if there are others: how many, the
-- end of a value as GETRANGE has it, and from 7 on for each window its kind and
-- length, its length, its quota, whether it slides and whether it is aligned. Of two
-- windows or more also the numbers of the value and of the reply, and their formats.
local plans = {}
local values, lifetimes -- of several keys
local parts, whole = { string.sub(input, 1, 8), '\0', '' }, 1 -- of the reply, and how many have been made
local server_now, make_decision
local from = 17 -- where the decision begins in input
local first_key = 1 -- the place of its first key in KEYS
for d = 1, count do
  local verb, size, items, time, p = unpack('<I1I4I4i8', input, from)
  local now = time
  if time == 0 and verb ~= SKIP then
    if not server_now then
      local t = redis.call('TIME')
      server_now = t[1] * 1000000 + t[2]
    end
    now = server_now
  end
  from = p + size
  local made, part, value, lifetime = verb == SKIP, whole + 1, nil, nil
  parts[part] = made and '\3' or '\0'
  for i = 1, verb == TAKE and items or 0 do
    local place, cost = unpack('<I4i8', input, p + 12 * (i - 1))
    local plan = plans[place]
    if plan == nil then
      local specs = ARGV[place]
      local n = (#specs - #specs % 21) / 21
      -- Of a value, one byte more than is needed is read, so that a longer one is
      -- noticed.
      plan = #specs < 86 and { n, n == 1 and '33' or n == 2 and '65' or n == 3 and '97' or '129', nil, nil, nil, nil, nil, nil, nil, nil, nil }
      for j = 0, plan and n - 1 or -1 do
        local kind, window, _, quota = unpack('<I1I6I6I4', specs, 21 * j + 1)
        if kind >= 2 * BUCKETED or quota > MOST then
          plan = false
          break
        end
        local q = 5 * j + 7
        plan[q], plan[q + 1], plan[q + 2], plan[q + 3], plan[q + 4] = kind + 256 * window, window, quota, kind < 2 * FIXED, kind % 2 == 1
      end
      if plan and n > 1 then
        plan[3] = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
        plan[4] = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
        plan[5] = FIRST .. string.rep('I3i7I7i7I4I4', n - 1)
        plan[6] = '<i8' .. string.rep('I4i7i7', n)
      end
      plans[place] = plan
    end
    local key, n = KEYS[first_key + i - 1], plan and plan[1]
    local v = plan and cost > 0 and pcall_redis('GETRANGE', key, '0', plan[2])
    local none = v == '' and pcall_redis('PTTL', key) == -2
    made = none or type(v) == 'string' and #v == 1 + 32 * n
    local at, longest = now, 0
    local head, form, pos = 7426, FIRST, 1
    local q, said, state = 7, plan and plan[4], plan and plan[3]
    for j = 1, made and n or 0 do
      made = false
      local of, window, quota, sliding = plan[q], plan[q + 1], plan[q + 2], plan[q + 3]
      local t, a, b = now, 0, 0
      if plan[q + 4] then t = now - now % window end -- the start of a window that opens now
      if not none then
        local h, _, o, start, cur, prev = unpack(form, v, pos)
        if h ~= head or o ~= of or start - now >= window or cur > MOST or prev > MOST then break end
        if now < start + window then
          t, a, b = start, cur, prev
        elseif sliding and now < start + 2 * window then
          t, b = start + window, cur
        end
      end
      a = a + cost
      local left, last = quota - a, t + window
      local reset = last - now
      local more = reset
      if t > at then at = t end
      if sliding then
        last = last + window
        reset = reset + window - (window - 1 - (window - 1) % a) / a
        -- One hit less of this window counts one unit after its end. Before
        -- that, so does one hit less of the window before, if it counts.
        more = more + 1
        if b > 0 then
          local weighed = b * (t > now and window or more - 1)
          local before = (weighed - weighed % window) / window
          if weighed >= 9007199254740992 then break end
          if before > 0 then
            left = left - before
            local p = before * window -- at most weighed, and so exact
            more = more - 1 - ((p - 1) - (p - 1) % b) / b
          end
        end
      end
      if left < 0 then break end
      if last > longest then longest = last end
      if n == 1 then
        value = pack(FIRST, 7426, last, of, t, a, b)
        parts[part + 1] = pack('<i8I4i7i7', at, left, reset, more)
      else
        local s = 6 * j
        state[s - 5], state[s - 4], state[s - 3], state[s - 2], state[s - 1], state[s] = head, last, of, t, a, b
        s = 3 * j
        said[s - 1], said[s], said[s + 1] = left, reset, more
        q, head, form, pos = q + 5, 29, NEXT, 32 * j + 2
      end
      made = true
    end
    if not made then break end
    part = part + 1
    if n > 1 then
      said[1] = at
      value = pack(plan[5], list(state, 1, 6 * n))
      parts[part] = pack(plan[6], list(said, 1, 3 * n + 1))
    end
    -- A value whose lifetime is right keeps it, which is faster: it is negative then.
    lifetime = ceil((longest - now) / 1000) + slack
    local is = not none and pcall_redis('PTTL', key)
    if type(is) == 'number' and is < lifetime + slack / 10 and is > lifetime - slack / 10 then lifetime = -lifetime end
    if items > 1 then
      if not values then values, lifetimes = {}, {} end
      values[i], lifetimes[i] = value, lifetime
    end
  end
  for i = 1, made and verb ~= SKIP and items or 0 do
    local key, r = KEYS[first_key + i - 1], nil
    if items > 1 then value, lifetime = values[i], lifetimes[i] end
    if lifetime < 0 then r, lifetime = pcall_redis('SETRANGE', key, '0', value), -lifetime end
    if type(r) ~= 'number' then r = pcall_redis('SET', key, value, 'PX', string.format('%d', lifetime)) end
    if type(r) == 'table' and r.err then
      local err = (i > 1 and 'FLOODGATE some of several keys have been written: ' or '') .. r.err
      part = whole + 1
      parts[part] = pack('<I1I4', 2, #err) .. err
      break
    end
  end
  if not made then
    if not make_decision then make_decision = machinery(input, slack) end
    part = whole + 1
    parts[part] = make_decision(now, first_key, verb, items, p)
  end
  first_key = first_key + items
  whole = part
end
return table.concat(parts, '', 1, whole)
