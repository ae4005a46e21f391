-- The commonest call, without the machinery below: a take from one key with up to
-- four sliding or fixed windows, which admit it. It does what the machinery does,
-- to the unit and the byte; all else, such as a denial or the states of other
-- limits under the same key, is left to that. Nothing that it does not need is
-- made before it: each function takes time. A number that is an argument of a
-- command is written as text, which is faster.
if verb == 'take' and #KEYS == 1 and #ARGV[5] < 86 then
  local specs, cost = ARGV[5], tonumber(ARGV[6])
  local n = (#specs - #specs % 21) / 21
  local windows = cost > 0
  for p = 1, 21 * n, 21 do windows = windows and string.byte(specs, p) < 2 * BUCKETED end
  -- One byte more than is read, so that a longer value is noticed.
  local size = n == 1 and '33' or n == 2 and '65' or n == 3 and '97' or '129'
  local v = windows and redis.pcall('GETRANGE', KEYS[1], '0', size)
  local none = v == '' and absent(KEYS[1])
  local at, longest, records, reply, admits = now, 0, '\2', nil, none or type(v) == 'string' and #v == 1 + 32 * n
  for i = 0, admits and n - 1 or -1 do
    admits = false
    local kind, window, _, quota = unpack('<I1I6I6I4', specs, 21 * i + 1)
    local sliding = kind < 2 * FIXED
    local first = kind % 2 == 1 and now - now % window or now -- the start of a window that opens now
    local t, a, b = first, 0, 0
    if not none then
      local version, length, _, k, w, start, cur, prev = unpack('<I1I3i7I1I6i7I4I4', v, 32 * i + 1)
      if i == 0 and version ~= 2 or length ~= 29 or k ~= kind or w ~= window or start - now >= window or cur > MOST or prev > MOST then break end
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
    records = records .. pack('<I3i7I1I6i7I4I4', 29, last, kind, window, t, a, b)
    local said = pack('<i8i8i8i8', quota - a - before, reset, more, 0)
    reply = reply and reply .. said or said
    admits = true
  end
  if admits then
    local r = redis.pcall('SET', KEYS[1], records, 'PX', ceil((longest - now) / 1000) + slack)
    if type(r) == 'table' and r.err then return r end
    return ARGV[1] .. pack('<i8', at) .. reply
  end
end
