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

#ifdef T_f32
typedef float real;
typedef uint32_t word;
#define OWN "f32"
#else
typedef double real;
typedef uint64_t word;
#define OWN "f64"
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

number constant_number(double value)
{
    const real x = static_cast<real>(value);
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
            return constant_number(static_cast<double>(real_of(a.at) symbol real_of(b.at)));                 \
        return number::of(add(FORMULA_##name, a.at, b.at));                                                  \
    }
NUMBERS(+, ADD)
NUMBERS(-, SUB)
NUMBERS(*, MUL)
NUMBERS(/, DIV)
number operator-(number a)
{
    if (is_constant(a.at)) return constant_number(-static_cast<double>(real_of(a.at)));
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

number select(condition c, number a, number b) { return number::of(add(FORMULA_SELECT, c.at, a.at, b.at)); }
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

// ---- the formulas, with these types in place of T and BITS ----

#define T             number
#define BITS          bits
#define K(c)          constant_number(static_cast<double>(c))
#define INF           K(INFINITY)
#define SEL(c, a, b)  select(c, a, b)
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
#define FN_DECL  [[maybe_unused]] static inline
#include "vmath.h"

#define DUET_MAP1(name, formula, ...)                                                                        \
    number map_##name(number x) { return formula; }
#define DUET_MAP2(name, formula, ...)                                                                        \
    number map_##name(number x, number y) { return formula; }
#define DUET_MAP3(name, formula, ...)                                                                        \
    number map_##name(number x, number y, number z) { return formula; }
#include <duet/ops.def>

// ---- writing ----

number argument(int index) { return number::of(add(FORMULA_ARGUMENT, index)); }

void begin()
{
    list.clear();
    known.clear();
    has_loop = false;
}

std::string tables; // the designators of formulas_f32 or formulas_f64

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
#define DUET_MAP1(name, ...)                                                                                 \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0)).at });
#define DUET_MAP2(name, ...)                                                                                 \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0), argument(1)).at });
#define DUET_MAP3(name, ...)                                                                                 \
    begin();                                                                                                 \
    end("of", #name, { map_##name(argument(0), argument(1), argument(2)).at });
#include <duet/ops.def>
}

void reductions()
{
#define DUET_FOLD1(name, start, take, ...)                                                                   \
    {                                                                                                        \
        begin();                                                                                             \
        [[maybe_unused]] const number x = argument(0), y = argument(1), a = argument(2);                     \
        end("of", #name, { (take).at });                                                                     \
    }
#define DUET_FOLD2 DUET_FOLD1
#define DUET_PLACE1(name, better, ...)                                                                       \
    {                                                                                                        \
        begin();                                                                                             \
        const number x = argument(0), a = argument(1);                                                       \
        end("of", #name, { (better).at });                                                                   \
    }
#define DUET_MOMENT1(name, take, ...)                                                                        \
    {                                                                                                        \
        begin();                                                                                             \
        const number x = argument(0);                                                                        \
        number a1 = argument(2), a2 = argument(3), a3 = argument(4);                                         \
        take;                                                                                                \
        end("of", #name, { a1.at, a2.at, a3.at });                                                           \
    }
#include <duet/ops.def>
}

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

} // namespace

int main()
{
    std::printf("/* Made by record_formulas.cpp. */\n#include \"formula.h\"\n");
    maps();
    reductions();
    moderate("exp", own_exp_moderate, own_exp_reach);
    moderate("sigmoid", own_sigmoid_moderate, own_sigmoid_reach);
    moderate("sin", own_sin_moderate, own_angle_reach);
    moderate("cos", own_cos_moderate, own_angle_reach);
    moderate("tan", own_tan_moderate, own_angle_reach);
    std::printf("static const uint64_t constants[] = {\n");
    for (const uint64_t c : constants) std::printf("    0x%llx,\n", static_cast<unsigned long long>(c));
    std::printf("};\nconst formula_table formulas_" OWN " = {\n%s    .constants = constants,\n};\n",
                tables.c_str());
    return 0;
}
