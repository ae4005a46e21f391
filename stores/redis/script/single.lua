-- Makes the decisions, the commonest of them without the machinery above: takes from
-- keys with up to four sliding or fixed windows each, which admit them. It does what
-- the machinery does, to the unit and the byte; all else, such as a denial or the
-- states of other limits under the same key, is left to that. It has no functions,
-- because to make one takes time, and so does a table or a string. A number that is
-- an argument of a command is written as text, which is faster.
local ceil, pack, unpack, pcall_redis = math.ceil, struct.pack, struct.unpack, redis.pcall
local MOST, FIXED, BUCKETED, SKIP, TAKE = 2147483647, 1, 2, 0, 1 -- as in meter.lua
local input = ARGV[1]
local slack, count = unpack('<I4I4', input, 9)
local plans = {} -- the windows at a place of ARGV, false if there are others
local values, lifetimes -- of several keys
local replies -- of several decisions
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
  local reply = verb == SKIP and '\3' or nil
  for i = 1, verb == TAKE and items or 0 do
    local place, cost, after = unpack('<I4i8', input, i == 1 and p or p + 12 * (i - 1))
    local plan = plans[place]
    if plan == nil then
      local specs = ARGV[place]
      local n = (#specs - #specs % 21) / 21
      -- Of a value, one byte more than is needed is read, so that a longer one is
      -- noticed.
      plan = #specs < 86 and { n, n == 1 and '33' or n == 2 and '65' or n == 3 and '97' or '129', 0, 0, 0 }
      for j = 1, plan and n or 0 do
        local kind, window, _, quota = unpack('<I1I6I6I4', specs, 21 * j - 20)
        if kind >= 2 * BUCKETED then
          plan = false
          break
        end
        plan[3 * j], plan[3 * j + 1], plan[3 * j + 2] = kind, window, quota
      end
      plans[place] = plan
    end
    local key, n = KEYS[first_key + i - 1], plan and plan[1]
    local v = plan and cost > 0 and pcall_redis('GETRANGE', key, '0', plan[2])
    local none = v == '' and pcall_redis('PTTL', key) == -2
    local admits = none or type(v) == 'string' and #v == 1 + 32 * n
    local at, longest, records, said = now, 0, nil, nil
    for j = 0, admits and n - 1 or -1 do
      admits = false
      local kind, window, quota = plan[3 * j + 3], plan[3 * j + 4], plan[3 * j + 5]
      local sliding = kind < 2 * FIXED
      local t, a, b = now, 0, 0
      if kind % 2 == 1 then t = now - now % window end -- the start of a window that opens now
      if not none then
        local version, length, _, k, w, start, cur, prev = unpack('<I1I3i7I1I6i7I4I4', v, 32 * j + 1)
        if j == 0 and version ~= 2 or length ~= 29 or k ~= kind or w ~= window or start - now >= window or cur > MOST or prev > MOST then break end
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
      if weighed >= 9007199254740992 or a + before + cost > quota then break end
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
      if j > 0 then
        records = records .. pack('<I3i7I1I6i7I4I4', 29, last, kind, window, t, a, b)
        said = said .. pack('<i8i8i8i8', quota - a - before, reset, more, 0)
      else
        records = pack('<I1I3i7I1I6i7I4I4', 2, 29, last, kind, window, t, a, b)
        said = pack('<i8i8i8i8', quota - a - before, reset, more, 0)
      end
      admits = true
    end
    if not admits then
      reply = nil
      break
    end
    local lifetime = string.format('%d', ceil((longest - now) / 1000) + slack)
    if items == 1 then
      local r = pcall_redis('SET', key, records, 'PX', lifetime)
      reply = type(r) == 'table' and r.err and pack('<I1I4', 2, #r.err) .. r.err or pack('<I1i8', 0, at) .. said
    else
      if not values then values, lifetimes = {}, {} end
      values[i], lifetimes[i], reply = records, lifetime, (reply or '\0') .. pack('<i8', at) .. said
    end
  end
  if reply and verb == TAKE and items > 1 then
    for i = 1, items do
      local r = pcall_redis('SET', KEYS[first_key + i - 1], values[i], 'PX', lifetimes[i])
      if type(r) == 'table' and r.err then
        local err = (i > 1 and 'FLOODGATE some of several keys have been written: ' or '') .. r.err
        reply = pack('<I1I4', 2, #err) .. err
        break
      end
    end
  end
  if not reply then
    if not make_decision then make_decision = machinery(input, slack) end
    reply = make_decision(now, first_key, verb, items, p)
  end
  first_key = first_key + items
  if count == 1 then return string.sub(input, 1, 8) .. reply end
  if not replies then replies = { string.sub(input, 1, 8) } end
  replies[d + 1] = reply
end
return replies and table.concat(replies) or string.sub(input, 1, 8)
