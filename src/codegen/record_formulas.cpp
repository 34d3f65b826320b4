// record_formulas.cpp - prints the formulas of ops.def as lists of operations (formula.h). The build
// compiles and runs it once for each type.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "formula.h"

namespace
{

#if defined T_f32
typedef float real;
typedef uint32_t word;
#define OWN "f32"
#elif defined T_f64
typedef double real;
typedef uint64_t word;
#define OWN "f64"
#elif defined T_i64
typedef int64_t real;
typedef uint64_t word;
#define OWN "i64"
#define FORMULA_INTEGERS
#else
typedef uint64_t real;
typedef uint64_t word;
#define OWN "u64"
#define FORMULA_INTEGERS
#endif

// ---- the list that is being written ----

struct node {
    int operation;
    int arg[3];
    bool operator<(const node &other) const
    {
        if (operation != other.operation) return operation < other.operation;
        return memcmp(arg, other.arg, sizeof arg) < 0;
    }
};

std::vector<node> list;
std::map<node, int> known;       // equal operations are written once
std::vector<uint64_t> constants; // of all formulas
bool has_loop;

int add(int operation, int a = 0, int b = 0, int c = 0)
{
    const node n = { operation, { a, b, c } };
    const auto found = known.find(n);
    if (found != known.end()) return found->second;
    list.push_back(n);
    return known[n] = static_cast<int>(list.size()) - 1;
}

int constant(word value)
{
    size_t at = 0;
    while (at < constants.size() && constants[at] != value) at++;
    if (at == constants.size()) constants.push_back(value);
    return add(FORMULA_CONSTANT, static_cast<int>(at));
}

bool is_constant(int at) { return list[static_cast<size_t>(at)].operation == FORMULA_CONSTANT; }
word value_of(int at)
{
    return static_cast<word>(constants[static_cast<size_t>(list[static_cast<size_t>(at)].arg[0])]);
}

// ---- the types of the formulas ----

struct condition {
    int at;
};

struct bits {
    int at = -1;
    bits() = default;
    template <class I, class = typename std::enable_if<std::is_integral<I>::value>::type>
    bits(I value) : at(constant(static_cast<word>(value)))
    {
    }
    static bits of(int at)
    {
        bits b;
        b.at = at;
        return b;
    }
};

struct number {
    int at = -1;
    static number of(int at)
    {
        number x;
        x.at = at;
        return x;
    }
};

number constant_number(real x)
{
    word w;
    memcpy(&w, &x, sizeof w);
    return number::of(constant(w));
}

real real_of(int at)
{
    const word w = value_of(at);
    real x;
    memcpy(&x, &w, sizeof x);
    return x;
}

// Operators of constants are computed.
#define NUMBERS(symbol, name)                                                                                \
    number operator symbol(number a, number b)                                                               \
    {                                                                                                        \
        if (is_constant(a.at) && is_constant(b.at))                                                          \
            return constant_number(static_cast<real>(real_of(a.at) symbol real_of(b.at)));                   \
        return number::of(add(FORMULA_##name, a.at, b.at));                                                  \
    }
NUMBERS(+, ADD)
NUMBERS(-, SUB)
NUMBERS(*, MUL)
#ifndef FORMULA_INTEGERS
NUMBERS(/, DIV)
#endif
number operator-(number a)
{
    if (is_constant(a.at)) return constant_number(static_cast<real>(-real_of(a.at)));
    return number::of(add(FORMULA_NEG, a.at));
}

#define COMPARISON(symbol, name)                                                                             \
    condition operator symbol(number a, number b) { return { add(FORMULA_##name, a.at, b.at) }; }
COMPARISON(<, LT)
COMPARISON(<=, LE)
COMPARISON(==, EQ)
COMPARISON(!=, NE)
COMPARISON(>, GT)
COMPARISON(>=, GE)

condition operator&(condition a, condition b) { return { add(FORMULA_BOTH, a.at, b.at) }; }
condition operator|(condition a, condition b) { return { add(FORMULA_EITHER, a.at, b.at) }; }

#ifndef FORMULA_INTEGERS
#define BITS_OF(symbol, name)                                                                                \
    bits operator symbol(bits a, bits b)                                                                     \
    {                                                                                                        \
        if (is_constant(a.at) && is_constant(b.at))                                                          \
            return bits::of(constant(static_cast<word>(value_of(a.at) symbol value_of(b.at))));              \
        return bits::of(add(FORMULA_##name, a.at, b.at));                                                    \
    }
BITS_OF(+, BIT_ADD)
BITS_OF(-, BIT_SUB)
BITS_OF(*, BIT_MUL)
BITS_OF(&, BIT_AND)
BITS_OF(|, BIT_OR)
BITS_OF(^, BIT_XOR)
#define SHIFT(symbol, name)                                                                                  \
    bits operator symbol(bits a, bits b)                                                                     \
    {                                                                                                        \
        if (!is_constant(b.at)) return bits::of(add(FORMULA_##name##_BY, a.at, b.at));                       \
        if (is_constant(a.at))                                                                               \
            return bits::of(constant(static_cast<word>(value_of(a.at) symbol value_of(b.at))));              \
        return bits::of(add(FORMULA_##name, a.at, static_cast<int>(value_of(b.at))));                        \
    }
SHIFT(<<, LEFT)
SHIFT(>>, RIGHT)
bits operator~(bits a)
{
    if (is_constant(a.at)) return bits::of(constant(static_cast<word>(~value_of(a.at))));
    return bits::of(add(FORMULA_BIT_NOT, a.at));
}
condition operator==(bits a, bits b) { return { add(FORMULA_BIT_EQ, a.at, b.at) }; }
condition operator!=(bits a, bits b) { return { add(FORMULA_BIT_NE, a.at, b.at) }; }
#endif

number select(condition c, number a, number b) { return number::of(add(FORMULA_SELECT, c.at, a.at, b.at)); }
#ifndef FORMULA_INTEGERS
number one(int operation, number x) { return number::of(add(operation, x.at)); }
number two(int operation, number x, number y) { return number::of(add(operation, x.at, y.at)); }
number fused(number a, number b, number c) { return number::of(add(FORMULA_FMA, a.at, b.at, c.at)); }
number as_number(bits b) { return number::of(b.at); }
bits as_bits(number x) { return bits::of(x.at); }

// A loop cannot be written down. Its body is compiled, but its list is not used.
bool begin_loop(condition)
{
    has_loop = true;
    return false;
}
#endif

// ---- the formulas, with these types in place of T and BITS ----

#define T            number
#define BITS         bits
#define K(c)         constant_number(static_cast<real>(c))
#define SEL(c, a, b) select(c, a, b)
#define FN_DECL      [[maybe_unused]] static inline
#ifdef FORMULA_INTEGERS
// The functions of integer.h. Divisions and powers have branches and loops, and are not recorded.
// FORMULA_LEFT_BY and FORMULA_RIGHT_BY give 0 where the shift is too large.
template <class... Any> number not_recorded(Any...)
{
    has_loop = true;
    return K(0);
}
#define own_floor_divide not_recorded
#define own_remainder    not_recorded
#define own_fmod         not_recorded
#define own_pow          not_recorded
number own_shift_left(number x, number y) { return number::of(add(FORMULA_LEFT_BY, x.at, y.at)); }
number logical_right(number x, number y) { return number::of(add(FORMULA_RIGHT_BY, x.at, y.at)); }
number operator&(number a, number b) { return number::of(add(FORMULA_BIT_AND, a.at, b.at)); }
number operator|(number a, number b) { return number::of(add(FORMULA_BIT_OR, a.at, b.at)); }
number operator^(number a, number b) { return number::of(add(FORMULA_BIT_XOR, a.at, b.at)); }
number operator~(number a) { return number::of(add(FORMULA_BIT_NOT, a.at)); }
#ifdef T_i64
// The shift of a negative x inverts its bits before and after.
number own_shift_right(number x, number y)
{
    const number sign = select(x < K(0), K(-1), K(0));
    return logical_right(x ^ sign, y) ^ sign;
}
#define ABS(x) MAXIMUM(x, -(x))
#else
number own_shift_right(number x, number y) { return logical_right(x, y); }
#define ABS(x) (x)
#endif
#define FMA(a, b, c)  ((a) * (b) + (c))
#define MINIMUM(a, b) number::of(add(FORMULA_MIN, (a).at, (b).at))
#define MAXIMUM(a, b) number::of(add(FORMULA_MAX, (a).at, (b).at))
#define FN(f)         own_##f
#else
#define INF           K(INFINITY)
#define FMA(a, b, c)  fused(a, b, c)
#define SQRT(x)       one(FORMULA_SQRT, x)
#define ABS(x)        one(FORMULA_ABS, x)
#define RINT(x)       one(FORMULA_RINT, x)
#define FLOOR(x)      one(FORMULA_FLOOR, x)
#define INVERSE(x)    one(FORMULA_INVERSE, x)
#define MINIMUM(a, b) two(FORMULA_MIN, a, b)
#define MAXIMUM(a, b) two(FORMULA_MAX, a, b)
#define AS_BITS(x)    as_bits(x)
#define AS_T(b)       as_number(b)
#define FN(f)         own_##f
#define TYPED(name)   own_##name
#define MAP(name, x)  map_##name(x)
#define SELDOM(c)
#define AGAIN(c) if (begin_loop(c))
#include "vmath.h"
#endif

#define ROW1(name, formula, ...)                                                                             \
    number map_##name([[maybe_unused]] number x) { return formula; }
#define ROW2(name, formula, ...)                                                                             \
    number map_##name([[maybe_unused]] number x, [[maybe_unused]] number y) { return formula; }
#define ROW3(name, formula, ...)                                                                             \
    number map_##name(number x, number y, number z) { return formula; }
#include "typed_ops.def"

// ---- writing ----

number argument(int index) { return number::of(add(FORMULA_ARGUMENT, index)); }

void begin()
{
    list.clear();
    known.clear();
    has_loop = false;
}

std::string tables; // the designators of the type's formula_table

// Writes the operations that the results need.
void end(const char *part, const char *name, const std::vector<int> &results)
{
    if (has_loop) return;
    std::vector<int> place(list.size(), -1);
    for (const int r : results) place[static_cast<size_t>(r)] = 0;
    const auto arity = [](int operation) {
#define OPERATION(name, arity) arity,
        static const int arities[] = { OPERATIONS(OPERATION) };
#undef OPERATION
        return arities[operation];
    };
    for (size_t i = list.size(); i-- > 0;)
        for (int k = 0; place[i] == 0 && k < arity(list[i].operation); k++)
            place[static_cast<size_t>(list[i].arg[k])] = 0;
    int count = 0;
    std::printf("static const formula_node %s_%s[] = {\n", part, name);
    for (size_t i = 0; i < list.size(); i++) {
        if (place[i] != 0) continue;
        node n = list[i];
        for (int k = 0; k < arity(n.operation); k++) n.arg[k] = place[static_cast<size_t>(n.arg[k])];
        place[i] = count++;
        std::printf("    { %d, { %d, %d, %d } },\n", n.operation, n.arg[0], n.arg[1], n.arg[2]);
    }
    std::printf("};\n");
    tables += "    ." + std::string(part) + "[OP_" + name + "] = { " + part + "_" + name + ", " +
              std::to_string(count) + ", " + std::to_string(results.size()) + ", { ";
    for (const int r : results) tables += std::to_string(place[static_cast<size_t>(r)]) + ", ";
    tables += "} },\n";
}

void maps()
{
#define ROW1(name, ...)                                                                                      \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0)).at });
#define ROW2(name, ...)                                                                                      \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0), argument(1)).at });
#define ROW3(name, ...)                                                                                      \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0), argument(1), argument(2)).at });
#include "typed_ops.def"
}

void reductions()
{
#define REDUCE_ROW1(name, start, take, ...)                                                                  \
    {                                                                                                        \
        begin();                                                                                             \
        [[maybe_unused]] const number x = argument(0), y = argument(1), a = argument(2);                     \
        end("of", #name, { (take).at });                                                                     \
    }
#define REDUCE_ROW2 REDUCE_ROW1
#define PLACE_ROW1(name, better, ...)                                                                        \
    {                                                                                                        \
        begin();                                                                                             \
        const number x = argument(0), a = argument(1);                                                       \
        end("of", #name, { (better).at });                                                                   \
    }
#define MOMENT_ROW1(name, take, ...)                                                                         \
    {                                                                                                        \
        begin();                                                                                             \
        const number x = argument(0);                                                                        \
        number a1 = argument(2), a2 = argument(3), a3 = argument(4);                                         \
        take;                                                                                                \
        end("of", #name, { a1.at, a2.at, a3.at });                                                           \
    }
#include "typed_ops.def"
}

#ifndef FORMULA_INTEGERS
// Records the moderate formula of a function of one operand (MODERATES in interp_functions_tmpl.c).
void moderate(const char *name, number (*f)(number), number (*reach)())
{
    begin();
    const double most = static_cast<double>(real_of(reach().at));
    begin();
    end("moderate", name, { f(argument(0)).at });
    char text[64];
    std::snprintf(text, sizeof text, "    .reach[OP_%s] = %a,\n", name, most);
    tables += text;
}
#endif

} // namespace

int main()
{
    std::printf("/* Made by record_formulas.cpp. */\n#include \"formula.h\"\n");
    maps();
    reductions();
#ifndef FORMULA_INTEGERS
    moderate("exp", own_exp_moderate, own_exp_reach);
    moderate("sigmoid", own_sigmoid_moderate, own_sigmoid_reach);
    moderate("sin", own_sin_moderate, own_angle_reach);
    moderate("cos", own_cos_moderate, own_angle_reach);
    moderate("tan", own_tan_moderate, own_angle_reach);
#endif
    std::printf("static const uint64_t constants[] = {\n");
    for (const uint64_t c : constants) std::printf("    0x%llx,\n", static_cast<unsigned long long>(c));
    std::printf("};\nconst formula_table formulas_" OWN " = {\n%s    .constants = constants,\n};\n",
                tables.c_str());
    return 0;
}
