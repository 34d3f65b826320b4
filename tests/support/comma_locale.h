/* comma_locale.h - selects a locale that writes numbers with a decimal comma. */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define COMMA_LOCALE "de_DE.UTF-8"

/* If the system does not have the locale, it is made in a temporary folder. false: it cannot be made. */
static bool comma_locale_begin(void)
{
    char folder[] = "/tmp/duet-locale-XXXXXX", command[200];
    if (setlocale(LC_NUMERIC, COMMA_LOCALE)) return true;
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/" COMMA_LOCALE " >%s/log 2>&1", folder,
             folder);
    const bool made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    const bool chosen = made && setlocale(LC_NUMERIC, COMMA_LOCALE);
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command)) return false;
    return chosen;
}

static void comma_locale_end(void) { setlocale(LC_NUMERIC, "C"); }

#endif
