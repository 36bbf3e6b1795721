1 / 0
value.n % 0
value.n div 0
9223372036854775807L + 1L
9223372036854775806L * 2L
cast('abc' as int)
cast('1.5' as int)
cast('' as double)
cast(300 as tinyint)
cast(1e30 as bigint)
cast('maybe' as boolean)
cast('2024-13-01' as date)
value.name + 1
value.name > 5
array(1, 2)[5]
element_at(array(1), 0)
element_at(array(1), 3)
split_part('a', ':', 0)
slice(array(1), 0, 1)
abs(-9223372036854775808L)
-(-9223372036854775808L)
regexp_replace('a', '(', 'b')
map('a', 1, 'a', 2)
sequence(1, 5, -1)
unbase64('a')
unbase64('aGk=aGk=')
unbase64('aG=k')
unbase64('aG= =')
unbase64('====')
unbase64('aGkx=')
get_json_object('[1]', '$[99999999999999999999]')
cast('9223372036854775808' as bigint)
cast('-9223372036854775809' as bigint)
cast(repeat('9', 5000) as bigint)
