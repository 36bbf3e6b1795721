value.n
value.nested.b
value['name']
value.items.sku
value.nested.a
key is null
key is not null
value.flag is true
value.flag is not true
value.flag is not false
1 + 2 * 3
value.m + 1
value.m - 1.5D
value.m * 2
value.d * value.m
value.m / 4
value.d / 2
7 div 2
-7 div 2
value.m div 2
-7 % 3
7 % -3
value.m % 5
value.d % 2
pmod(-7, 3)
pmod(value.m, 4)
mod(value.m, 4)
-value.m
-(-5)
+value.m
5 & 3
5 | 3
5 ^ 3
~5
value.m & 255
shiftleft(1L, 3)
shiftright(-16L, 2)
bit_count(7L)
value.n = 7
value.n == 7
value.n <> 7
value.n != 7
value.n < 8
value.n >= value.m
value.d > value.m
value.d = 2.5D
value.name = 'x'
value.name < 'b'
'abc' <=> null
null <=> null
value.n <=> 7
value.n is distinct from 7
value.number = 42
value.number > 5
42 = value.number
value.flag = true
value.flag and value.n > 3
value.flag or value.n > 3
not value.flag
value.flag and null
value.flag or null
not (value.n > 3)
value.n between 0 and 10
value.n not between 0 and 10
value.n in (1, 7)
value.n in (1, null)
value.n not in (1, null)
value.name in ('', 'x')
value.name like 'A%'
value.name like '_b%'
value.name not like '%x'
value.name like '%:%'
'50%' like '50\%'
'50%' like '50!%' escape '!'
value.name not ilike 'AB%'
value.name not like '50!%' escape '!'
value.name not rlike '^[A-Z]'
value.name ilike 'ab%'
value.name rlike '^[A-Z]'
value.name rlike 'c+d'
case when value.n > 5 then 'big' when value.n > 0 then 'small' else 'none' end
case when value.n > 5 then 'big' end
case value.n when 7 then 'seven' when 0 then 'zero' else 'other' end
case value.n when null then 1 else 2 end
if(value.flag, 'yes', 'no')
if(value.n > 3, value.n, value.m)
coalesce(value.name, 'none')
coalesce(null, value.n, value.m)
nvl(value.d, 0D)
ifnull(value.name, 'x')
nvl2(value.name, 1, 2)
nullif(value.n, 7)
nullif(value.name, '')
isnull(value.n)
isnotnull(value.n)
greatest(value.n, value.m, 3)
least(value.n, value.m, 3)
greatest(value.name, 'M')
concat(value.name, '-', value.n)
concat('a', null)
concat()
value.name || '!' || value.m
concat_ws(',', 'a', null, 'b')
concat_ws('-', value.tags)
concat_ws('-', value.name, value.tags)
upper(value.name)
lower(value.name)
ucase(key)
initcap('hello wORLD ab')
length(value.name)
char_length(key)
octet_length(key)
substring(value.name, 2)
substring(value.name, 2, 3)
substring(value.name, 0, 2)
substring(value.name, -3)
substring(value.name, -3, 2)
substring(value.name, -30, 25)
substr(value.name, 4, 100)
left(value.name, 2)
right(value.name, 3)
right(value.name, 0)
left(value.name, -1)
substring_index(value.name, ':', 1)
substring_index(value.name, ':', 2)
substring_index(value.name, ':', -1)
substring_index(value.name, ':', 9)
substring_index(value.name, ':', 0)
trim(value.name)
ltrim(value.name)
rtrim(value.name)
btrim(value.name)
btrim('xxaxx', 'x')
trim('xy', 'xaxyx')
replace(value.name, ':', '')
replace(value.name, 'b', 'BB')
replace(value.name, '', 'z')
translate(value.name, 'abc', 'xy')
repeat(key, 2)
repeat(key, 0)
reverse(key)
reverse(value.numbers)
lpad(key, 6, '*')
rpad(key, 6, 'xy')
lpad(key, 2)
instr(value.name, ':')
instr(value.name, 'zz')
locate(':', value.name)
locate(':', value.name, 4)
position(':', value.name)
startswith(value.name, 'A')
endswith(value.name, 'x')
contains(value.name, 'cd')
ascii('A')
ascii('')
chr(65)
split(value.name, ':')
split(value.name, ':')[0]
split(value.name, '[:x]')
split('a1b2c', '[0-9]')
split('abc', '')
split('a,b,c', ',', 2)
split(',a,', ',')
split_part(value.name, ':', 2)
split_part(value.name, ':', -1)
split_part(value.name, ':', 9)
regexp_replace(value.name, '[a-z]', '*')
regexp_replace('100-200', '(\d+)-(\d+)', '$2-$1')
regexp_extract('100-200', '(\d+)-(\d+)', 2)
regexp_extract('100-200', '(\d+)', 0)
regexp_extract('abc', '(\d+)', 1)
regexp_extract_all('a1b22', '[a-z](\d+)', 1)
regexp_like(value.name, 'c.')
regexp_count('a1b22', '[0-9]')
cast(value.n as string)
cast(value.d as string)
cast(value.e as string)
cast(value.flag as string)
cast(value.bytes as string) is null
cast(1e7 as string)
cast(1.0E-4D as string)
cast(123456.789D as string)
cast(9999999.5D as string)
cast(-0.001D as string)
cast(0.0009D as string)
cast(1.5E300D as string)
cast(double('NaN') as string)
cast(double('-Infinity') as string)
cast(100D as string)
cast(value.number as bigint)
cast(value.number as int)
cast(value.number as double)
cast(value.d as bigint)
cast(-2.9D as bigint)
cast(2.9D as int)
cast(value.n as double)
cast(value.flag as int)
cast(value.n as boolean)
cast('yes' as boolean)
cast(' F ' as boolean)
cast('1e3' as double)
cast(' 1.5 ' as double)
cast('inf' as double) > 1
cast('2.5d' as double)
cast('+7' as bigint)
cast(value.items as string)
cast(value.nested as string)
cast(value.numbers as string)
cast('abc' as binary)
try_cast('abc' as int)
try_cast('7' as int)
try_cast(value.name as bigint)
try_cast('2024-13-01' as date) is null
string(value.m)
bigint('5') + 1
double('5')
int(7.9D)
boolean('true')
abs(value.m)
abs(-2.5D)
round(2.5D)
round(-2.5D)
round(2.345D, 2)
round(1.005D, 2)
round(1234L, -2)
round(value.m)
bround(2.5D)
bround(3.5D)
ceil(2.1D)
ceil(-2.1D)
floor(2.9D)
floor(-2.1D)
ceil(value.m)
sign(value.m)
sqrt(16D)
sqrt(-1D)
cbrt(27D)
exp(0D)
ln(1D)
ln(0D)
log10(1000D)
log2(8D)
log(2, 8)
pow(2, 10)
power(value.d, 2)
pi()
hypot(3D, 4D)
isnan(double('NaN'))
isnan(null)
hex(255L)
hex('abc')
try_divide(1, 0)
try_divide(value.n, 2)
try_add(1, 2)
try_add(9223372036854775807L, 1L)
try_multiply(9223372036854775807L, 2L)
array(1, 2, null)
array(1, 2)[1]
array('a', 'b')
size(value.items)
size(array())
cardinality(value.tags)
element_at(array(5, 6), 2)
element_at(array(1, 2, 3), -1)
try_element_at(value.numbers, 9)
get(value.numbers, 0)
get(value.numbers, 9)
array_contains(value.tags, 'a')
array_contains(value.tags, 'zz')
array_contains(value.numbers, 3L)
array_position(value.numbers, 2L)
array_distinct(value.numbers)
array_distinct(value.tags)
array_union(array(1, 2), array(2, 3))
array_except(value.numbers, array(3L))
array_intersect(value.numbers, array(3L, 9L))
arrays_overlap(array(1, 2), array(2, 3))
arrays_overlap(array(1, null), array(2, 3))
array_remove(value.numbers, 3L)
array_append(value.numbers, 9L)
array_prepend(value.numbers, 9L)
array_join(value.tags, '+')
array_join(value.tags, '+', '?')
array_repeat('x', 3)
array_max(value.numbers)
array_min(value.numbers)
array_sort(value.tags)
array_sort(value.numbers)
sort_array(value.tags)
sort_array(value.numbers, false)
array_compact(value.tags)
slice(array(1, 2, 3, 4), 2, 2)
slice(array(1, 2, 3, 4), -2, 2)
flatten(array(array(1, 2), array(3)))
sequence(1, 4)
sequence(4, 1)
sequence(1, 9, 3)
concat(array(1, 2), array(3))
transform(value.numbers, x -> x + 1)
transform(value.numbers, (x, i) -> x * i)
transform(value.items, i -> i.sku)
transform(value.items, i -> struct(i.sku as key, i.quantity as value))
filter(value.numbers, x -> x > 1)
filter(value.items, i -> i.quantity is not null)
filter(value.numbers, (x, i) -> i > 0)
exists(value.numbers, x -> x > 2)
exists(value.numbers, x -> x > 100)
forall(value.numbers, x -> x > 0)
aggregate(value.numbers, 0L, (acc, x) -> acc + x)
aggregate(value.numbers, 0L, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 10)
reduce(array(1, 2, 3), 0, (acc, x) -> acc + x)
zip_with(array(1, 2), array(3, 4), (x, y) -> x * y)
zip_with(array(1, 2), array(3), (x, y) -> coalesce(y, 0))
array_sort(array(2, 9, 4), (a, b) -> case when a < b then 1 when a > b then -1 else 0 end)
transform(value.tags, t -> upper(t))
transform(transform(array(1, 2), x -> array(x, x + 1)), xs -> aggregate(xs, 0, (a, b) -> a + b))
struct(value.n, value.d)
struct(value.n as a, value.name as b)
struct(value.nested.*, value.n as extra) is not null
struct(1 + 1, 'x')
named_struct('a', value.n, 'b', 'y')
named_struct('inner', named_struct('x', 1))
struct(value.n as a).a
map('a', 1, 'b', 2)
map('a', 1)['a']
map('a', 1)['zz']
map_keys(map('a', 1, 'b', 2))
map_values(map('a', 1, 'b', 2))
map_entries(map('a', 1))
map_contains_key(map('a', 1), 'a')
map_from_arrays(array('a', 'b'), array(1, 2))
map_from_entries(array(struct('a', 1), struct('b', 2)))
map_concat(map('a', 1), map('b', 2))
map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)
transform_values(map('a', 1), (k, v) -> v + 1)
transform_keys(map('a', 1), (k, v) -> upper(k))
get_json_object(value.json, '$.a.b')
get_json_object(value.json, '$.a.b[1]')
get_json_object(value.json, '$.a.b[2]')
get_json_object(value.json, '$.d')
get_json_object(value.json, '$.nope')
json_array_length(value.json)
to_json(named_struct('a', 1, 'b', 'x', 'c', cast(null as string)))
to_json(array(1, 2))
get_json_object('{"a":NaN,"b":1}', '$.b')
json_array_length('[1,NaN]')
to_json(array(12345678.5D, 0.25D, 0.0005D, -1e20D))
to_json(named_struct('a', double('NaN'), 'b', array(double('-Infinity'))))
to_json(named_struct('a', '\u001b \u000b \t'))
get_json_object('{"a":10000000.0,"b":[1e-5,1.10,0.00001]}', '$.a')
get_json_object('{"a":10000000.0,"b":[1e-5,1.10,0.00001]}', '$.b')
md5(value.name)
sha1(value.name)
sha2(value.name, 256)
sha2(value.name, 512)
crc32(value.name)
base64(value.bytes)
unbase64('aGk=')
timestamp_millis(timestamp)
timestamp_seconds(1704067200)
unix_millis(timestamp_millis(timestamp))
unix_seconds(timestamp_millis(timestamp))
date_format(timestamp_millis(timestamp), 'yyyy-MM-dd HH:mm:ss.SSS')
date_format(timestamp_millis(timestamp), "dd/MM/yy 'at' H'h'")
date_format(timestamp_millis(timestamp), 'EEE, d MMM yyyy')
cast(timestamp_millis(timestamp) as string)
cast(cast('2024-02-29' as date) as string)
to_date('2024-02-29')
to_date('2024-2-9')
cast('2024-02-29 12:34:56.789' as timestamp)
cast('2024-02-29T12:34:56Z' as timestamp)
cast('2024-02-29 12:34:56+02:00' as timestamp)
date_add(to_date('2024-02-28'), 2)
date_sub(to_date('2024-03-01'), 1)
datediff(to_date('2024-03-01'), to_date('2024-02-01'))
add_months(to_date('2024-01-31'), 1)
last_day(to_date('2024-02-03'))
date_trunc('hour', timestamp_millis(timestamp))
date_trunc('MONTH', timestamp_millis(timestamp))
date_trunc('week', timestamp_millis(timestamp))
date_trunc('quarter', timestamp_millis(timestamp))
trunc(to_date('2024-05-17'), 'year')
year(timestamp_millis(timestamp))
month(timestamp_millis(timestamp))
day(timestamp_millis(timestamp))
hour(timestamp_millis(timestamp))
minute(timestamp_millis(timestamp))
second(timestamp_millis(timestamp))
quarter(to_date('2024-05-17'))
dayofweek(to_date('2024-05-17'))
weekday(to_date('2024-05-17'))
dayofyear(to_date('2024-05-17'))
weekofyear(to_date('2024-12-30'))
to_date('2024-05-17') < to_date('2024-05-18')
timestamp_millis(timestamp) + interval 1 hour
timestamp_millis(timestamp) > timestamp '2020-01-01 00:00:00'
date '2024-05-17' = to_date('2024-05-17')
unix_date(to_date('1970-01-10'))
make_date(2024, 5, 17)
'it\'s'
'a\nb'
'tab\tend'
"double quoted"
1.5e3
0.1 + 0.2 > 0.29
1e3 = 1000
get_json_object('{"a":{"b":1e400}}', '$.a')
get_json_object('{"a":{"b":-1e400}}', '$.a.b')
get_json_object('{"a":1e400,"b":[-1e400,2]}', '$')
get_json_object('{"a":1e400,"b":[-1e400,2]}', '$.b[1]')
json_array_length('[1,1e400]')
get_json_object('{"a":[1,2]}', '$.a[٠]')
get_json_object('{"a":[1,2]}', '$.a[00]')
get_json_object('["\\ud800"]', '$')
get_json_object('["\\ud800"]', '$[0]')
unhex(' 41 ')
unhex('41\n\n')
unhex('4 1')
unhex('4１')
unhex('Aa')
unhex('414')
unhex('')
unhex(41)
unbase64(' aGk= ')
unbase64('aG\r\nk=\n')
unbase64('aGk')
unbase64('a-_k')
unbase64('aGl=')
unbase64('aGkxaG')
unbase64('aG==')
unbase64('aGk==')
unbase64('é')
unbase64('')
sha2('a', 0)
sha2('a', 1)
sha2('a', 224)
sha2('a', 384)
to_json(named_struct('a', cast('0099-01-02 03:04:05.678' as timestamp), 'b', cast('0099-01-02' as date)))
to_json(array(cast('0001-01-01 00:00:00' as timestamp), cast('9999-12-31 23:59:59.9999' as timestamp)))
cast('00000000000000000000000000000000000000007' as bigint)
cast(' -9223372036854775808 ' as bigint)
cast('-000' as bigint)
