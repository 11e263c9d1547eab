#!/usr/bin/env python3
"""Writes evaluation.tsv: synthetic sentences with labelled personal information, written and as a recogniser hears them.

    pip install faker==40.63.0 presidio-evaluator==0.3.2
    python3 generate.py > evaluation.tsv

The values come from Faker, with a fixed seed. The sentences are the templates of presidio-evaluator, which others wrote,
and those below, which the author of the rules wrote before the rules. No rule may be changed because of what this file
contains: it would measure nothing then.

A line has the form (`written` or `spoken`), the source of its template (`presidio` or `own`), and the sentence. A value
is `{TYPE|value}`.
"""

import importlib.util
import os
import random
import re
import string
from datetime import date, timedelta

from faker import Faker

SEED = 20260
rng = random.Random(SEED)
LOCALES = [Faker("en_US"), Faker("en_GB"), Faker("en_IN"), Faker("en_AU")]
for fake in LOCALES:
    fake.seed_instance(SEED)
US = LOCALES[0]

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ORDINALS = ("zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth").split()


def person():
    """A name of any of the locales, mostly American."""
    return rng.choices(LOCALES, weights=[7, 1, 1, 1])[0]


def cardinal(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")
    if n < 1000:
        rest = n % 100
        joint = rng.choice([" and ", " "]) if rest else ""
        return ONES[n // 100] + " hundred" + joint + (cardinal(rest) if rest else "")
    if n < 1_000_000:
        rest = n % 1000
        return cardinal(n // 1000) + " thousand" + (" " + cardinal(rest) if rest else "")
    rest = n % 1_000_000
    return cardinal(n // 1_000_000) + " million" + (" " + cardinal(rest) if rest else "")


def ordinal(n):
    if n <= 20:
        return ORDINALS[n]
    if n % 10 == 0:
        return TENS[n // 10][:-1] + "ieth"
    return TENS[n // 10] + " " + ORDINALS[n % 10]


def year_words(year):
    if 2000 <= year < 2010:
        return "two thousand" + (" " + ONES[year % 10] if year % 10 else "")
    high, low = divmod(year, 100)
    if low == 0:
        return cardinal(high) + " hundred"
    return cardinal(high) + " " + (cardinal(low) if low >= 10 else rng.choice(["oh ", "zero "]) + ONES[low])


def digits_words(digits):
    """One digit after the other, with what people do to them."""
    oh, pairs = rng.random() < 0.5, rng.random() < 0.2
    out, at = [], 0
    while at < len(digits):
        if pairs and digits[at:at + 2] == digits[at] * 2 and digits[at + 1:at + 3] != digits[at] * 2:
            out.append("double " + ("oh" if oh and digits[at] == "0" else ONES[int(digits[at])]))
            at += 2
            continue
        out.append("oh" if oh and digits[at] == "0" else ONES[int(digits[at])])
        at += 1
    return " ".join(out)


def grouped_words(text):
    """Digits one by one, letters one by one, everything else a pause."""
    return " ".join(digits_words(part) if part.isdigit() else " ".join(part.lower())
                    for part in re.findall(r"\d+|[A-Za-z]+", text))


def symbols_words(text, names):
    """An address of the internet as it is read aloud."""
    out = []
    for part in re.findall(r"\d+|[A-Za-z]+|.", text):
        if part.isdigit():
            out.append(digits_words(part) if len(part) != 2 or part[0] in "01" else rng.choice([digits_words(part), cardinal(int(part))]))
        elif part.isalpha():
            out.append("w w w" if part.lower() == "www" else part.lower())
        else:
            out.append(names.get(part, ""))
    return " ".join(word for word in out if word)


def plain(text):
    """Any text as a recogniser without numbers, case and punctuation writes it."""
    text = text.lower().replace("%", " percent ").replace("&", " and ")
    text = re.sub(r"\d+", lambda n: " " + (cardinal(int(n[0])) if len(n[0]) < 7 and not n[0].startswith("0") else digits_words(n[0])) + " ", text)
    text = re.sub(r"[^a-z' ]", " ", text)
    return re.sub(r"\s+", " ", re.sub(r"(?<![a-z])'|'(?![a-z])", "", text)).strip()


def a_date(first=1940, last=2026, has_year=True):
    day = date(first, 1, 1) + timedelta(days=rng.randrange((last - first) * 365))
    month, year = MONTHS[day.month - 1], f" {day.year}" if has_year else ""
    written = rng.choice([
        f"{month} {day.day}" + (f", {day.year}" if has_year else ""),
        f"{day.day} {month}{year}",
        f"{month} {day.day}{suffix(day.day)}" + (f", {day.year}" if has_year else ""),
    ] + ([f"{day.month:02}/{day.day:02}/{day.year}", day.isoformat(), f"{day.month}/{day.day}/{day.year % 100:02}"] if has_year else []))
    spoken_year = " " + year_words(day.year) if has_year else ""
    spoken = rng.choice([
        f"{month} {ordinal(day.day)}{spoken_year}",
        f"the {ordinal(day.day)} of {month}{spoken_year}",
        f"{month} {cardinal(day.day)}{spoken_year}",
    ])
    return written, spoken.lower()


def suffix(n):
    return "th" if 10 < n % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")


def phone():
    digits = f"{rng.choice('23456789')}{rng.randrange(10)}{rng.randrange(1, 10)}555{rng.randrange(10000):04}"
    a, b, c = digits[:3], digits[3:6], digits[6:]
    written = rng.choice([f"{a}-{b}-{c}", f"({a}) {b}-{c}", f"{a}.{b}.{c}", f"+1 {a} {b} {c}", f"{a} {b} {c}"])
    return written, ", ".join([digits_words(a), digits_words(b), digits_words(c)]).replace(",", "")


def luhn(digits):
    total = 0
    for at, digit in enumerate(reversed(digits)):
        n = int(digit) * (2 if at % 2 else 1)
        total += n - 9 if n > 9 else n
    return total % 10 == 0


def card():
    digits = US.credit_card_number(card_type=rng.choice(["visa16", "mastercard", "amex", "discover"]))
    assert luhn(digits), digits
    four = [digits[at:at + 4] for at in range(0, len(digits), 4)]
    if len(digits) == 15:
        four = [digits[:4], digits[4:10], digits[10:]]
    return rng.choice([digits, " ".join(four), "-".join(four)]), digits_words(digits)


def email():
    written = rng.choice([person().email(), f"{US.user_name()}@{US.free_email_domain()}", US.company_email()])
    return written, symbols_words(written, {"@": "at", ".": "dot", "-": "dash", "_": "underscore"})


def url():
    written = rng.choice([US.url(), "www." + US.domain_name(), US.domain_name(), US.url() + US.uri_path()])
    return written, symbols_words(re.sub(r"^https?://|/$", "", written), {".": "dot", "/": "slash", "-": "dash", "_": "underscore"})


def ip():
    written = US.ipv4()
    return written, " dot ".join(digits_words(part) for part in written.split("."))


def iban():
    written = LOCALES[1].iban()
    if rng.random() < 0.5:
        written = " ".join(written[at:at + 4] for at in range(0, len(written), 4))
    return written, grouped_words(written)


def routing():
    digits = US.aba()
    return digits, digits_words(digits)


def ssn():
    written = US.ssn()
    return written, grouped_words(written)


def number(length):
    digits = "".join(rng.choice(string.digits) for _ in range(length))
    return digits, digits_words(digits)


def account():
    return number(rng.randrange(7, 13))


def expiration():
    month, year = rng.randrange(1, 13), rng.randrange(26, 36)
    return f"{month:02}/{year}", rng.choice([f"{'oh ' if month < 10 else ''}{cardinal(month)} {cardinal(year)}", f"{MONTHS[month - 1].lower()} {year_words(2000 + year)}"])


def address():
    street, city = f"{US.building_number()} {US.street_name()}", US.city()
    (name, state), code = rng.choice(STATES), US.zipcode()
    written = rng.choice([f"{street}, {city}, {state} {code}", f"{street}, {city}, {state}", street])
    number_words = re.sub(r"^\d+", lambda n: digits_words(n[0]), street).lower()
    spoken = number_words
    if city in written:
        spoken += f" {city.lower()} {name.lower()}"
    if written.endswith(code):
        spoken += " " + digits_words(code)
    return written, spoken


STATES = [("Alabama", "AL"), ("Alaska", "AK"), ("Arizona", "AZ"), ("Arkansas", "AR"), ("California", "CA"), ("Colorado", "CO"),
          ("Connecticut", "CT"), ("Delaware", "DE"), ("District of Columbia", "DC"), ("Florida", "FL"), ("Georgia", "GA"), ("Hawaii", "HI"), ("Idaho", "ID"),
          ("Illinois", "IL"), ("Indiana", "IN"), ("Iowa", "IA"), ("Kansas", "KS"), ("Kentucky", "KY"), ("Louisiana", "LA"), ("Maine", "ME"),
          ("Maryland", "MD"), ("Massachusetts", "MA"), ("Michigan", "MI"), ("Minnesota", "MN"), ("Mississippi", "MS"), ("Missouri", "MO"),
          ("Montana", "MT"), ("Nebraska", "NE"), ("Nevada", "NV"), ("New Hampshire", "NH"), ("New Jersey", "NJ"), ("New Mexico", "NM"),
          ("New York", "NY"), ("North Carolina", "NC"), ("North Dakota", "ND"), ("Ohio", "OH"), ("Oklahoma", "OK"), ("Oregon", "OR"),
          ("Pennsylvania", "PA"), ("Rhode Island", "RI"), ("South Carolina", "SC"), ("South Dakota", "SD"), ("Tennessee", "TN"), ("Texas", "TX"),
          ("Utah", "UT"), ("Vermont", "VT"), ("Virginia", "VA"), ("Washington", "WA"), ("West Virginia", "WV"), ("Wisconsin", "WI"), ("Wyoming", "WY")]


def same(text):
    return text, plain(text)


def money():
    amount = rng.choice([rng.randrange(5, 100), rng.randrange(1, 100) * 100, rng.randrange(1, 60) * 1000])
    return f"${amount:,}", f"{cardinal(amount)} dollars"


def clock():
    hour, minute, half = rng.randrange(1, 13), rng.choice([0, 15, 30, 45]), rng.choice(["am", "pm"])
    spoken = cardinal(hour) + ("" if minute == 0 else " " + cardinal(minute)) + " " + " ".join(half)
    return f"{hour}:{minute:02} {half}", spoken


def duration():
    n = rng.randrange(2, 30)
    return same(f"{n} {rng.choice(['minutes', 'hours', 'days', 'weeks', 'months', 'years'])}")


def age():
    n = rng.randrange(18, 95)
    return str(n), cardinal(n)


def year():
    n = rng.randrange(1950, 2026)
    return str(n), year_words(n)


def coordinate():
    north, east = rng.uniform(-89, 89), rng.uniform(-179, 179)
    written = f"{north:.4f}, {east:.4f}"
    read = lambda x: ("minus " if x < 0 else "") + cardinal(int(abs(x))) + " point " + digits_words(f"{abs(x):.4f}".split(".")[1])
    return written, read(north) + " " + read(east)


def plate():
    return (lambda s: (s, grouped_words(s)))(f"{''.join(rng.choice(string.ascii_uppercase) for _ in range(3))}{rng.randrange(1000, 10000)}")


def licence():
    s = f"{rng.choice(string.ascii_uppercase)}{rng.randrange(1000000, 10000000)}"
    return s, grouped_words(s)


def username():
    s = US.user_name() + str(rng.randrange(10, 100))
    return s, symbols_words(s, {})


def password():
    word = US.word() + str(rng.randrange(100, 10000))
    return word, symbols_words(word, {})


def filename():
    s = US.file_name(extension=rng.choice(["pdf", "docx", "txt", "jpg", "xlsx"]))
    name, ending = s.split(".")
    return s, f"{name} dot {' '.join(ending) if ending in ('pdf', 'jpg') else ending}"


# What a placeholder of presidio-evaluator is: the type of its value, and how to make it.
PRESIDIO = {
    "first_name": ("NAME", lambda: same(person().first_name())), "first_name_male": ("NAME", lambda: same(person().first_name_male())),
    "first_name_female": ("NAME", lambda: same(person().first_name_female())),
    "first_name_nonbinary": ("NAME", lambda: same(US.first_name_nonbinary())),
    "last_name": ("NAME", lambda: same(person().last_name())), "last_name_male": ("NAME", lambda: same(person().last_name())),
    "last_name_female": ("NAME", lambda: same(person().last_name())),
    "person": ("NAME", lambda: same_person()), "name": ("NAME", lambda: same_person()),
    "name_male": ("NAME", lambda: same_person()), "name_female": ("NAME", lambda: same_person()),
    "organization": ("ORGANIZATION", lambda: same(US.company())), "city": ("LOCATION_CITY", lambda: same(US.city())),
    "address": ("LOCATION_ADDRESS", address), "street_name": ("LOCATION_ADDRESS_STREET", lambda: same(US.street_name())),
    "building_number": ("LOCATION_ADDRESS", lambda: number(3)), "secondary_address": ("LOCATION_ADDRESS", lambda: same(US.secondary_address())),
    "country": ("LOCATION_COUNTRY", lambda: same(US.country())), "state_abbr": ("LOCATION_STATE", lambda: state()),
    "credit_card_number": ("CREDIT_CARD", card), "phone_number": ("PHONE_NUMBER", phone), "age": ("AGE", age), "year": ("YEAR", year),
    "postcode": ("LOCATION_ZIP", lambda: number(5)), "zipcode": ("LOCATION_ZIP", lambda: number(5)),
    "nationality": ("ORIGIN", lambda: same(rng.choice(["American", "German", "Canadian", "Mexican", "Italian", "Irish", "Chinese", "Indian", "Polish", "Nigerian"]))),
    "nation_woman": ("ORIGIN", lambda: same(rng.choice(["German", "Englishwoman", "Spaniard", "American"]))),
    "nation_plural": ("ORIGIN", lambda: same(rng.choice(["Germans", "Italians", "Swedes", "Canadians"]))),
    "email": ("EMAIL_ADDRESS", email), "url": ("URL", url), "job": ("OCCUPATION", lambda: same(US.job())),
    "prefix": (None, lambda: same(US.prefix())), "prefix_male": (None, lambda: same(US.prefix_male())),
    "prefix_female": (None, lambda: same(US.prefix_female())),
    "iban": ("BANK_ACCOUNT", iban), "date_time": ("DATE", a_date), "date_of_birth": ("DOB", lambda: a_date(1940, 2010)),
    "ssn": ("SSN", ssn), "ip_address": ("IP_ADDRESS", ip), "day_of_week": ("DAY", lambda: same(rng.choice(DAYS))),
    "us_driver_license": ("DRIVER_LICENSE", licence),
}


def same_person():
    fake = person()
    return same(f"{fake.first_name()} {fake.last_name()}")


def state():
    name, short = rng.choice(STATES)
    return short, name.lower()


# The author's own templates: calls and conversations, with the types that the others lack. `{TYPE}` is a value.
OWN = {
    "NAME": same_person, "FIRST": lambda: same(person().first_name()), "LAST": lambda: same(person().last_name()),
    "EMAIL_ADDRESS": email, "URL": url, "IP_ADDRESS": ip, "PHONE_NUMBER": phone, "CREDIT_CARD": card,
    "CREDIT_CARD_EXPIRATION": expiration, "CVV": lambda: number(3), "BANK_ACCOUNT": account, "IBAN": iban, "ROUTING_NUMBER": routing,
    "ACCOUNT_NUMBER": account, "SSN": ssn, "DATE": a_date, "DATE_NO_YEAR": lambda: a_date(has_year=False), "DOB": lambda: a_date(1940, 2010),
    "DAY": lambda: same(rng.choice(DAYS)), "MONTH": lambda: same(rng.choice([m for m in MONTHS if m not in ("May", "March")])), "YEAR": year,
    "TIME": clock, "DURATION": duration, "AGE": age, "MONEY": money, "LOCATION_ZIP": lambda: number(5), "LOCATION_COORDINATE": coordinate,
    "LOCATION_ADDRESS": address, "LOCATION_CITY": lambda: same(rng.choice(["Chicago", "Boston", "Denver", "Seattle", "London", "Manchester", "Berlin", "Toronto", "Sydney", "Mumbai", "Houston", "Leeds", "Atlanta", "Dublin"])),
    "LOCATION_STATE": lambda: same(rng.choice(STATES)[0]), "LOCATION_COUNTRY": lambda: same(rng.choice(["France", "Germany", "Canada", "Mexico", "India", "Brazil", "Japan", "Kenya", "South Africa", "New Zealand", "United Kingdom"])),
    "PASSPORT_NUMBER": lambda: number(9), "DRIVER_LICENSE": licence, "VEHICLE_ID": plate, "HEALTHCARE_NUMBER": lambda: number(10),
    "USERNAME": username, "PASSWORD": password, "FILENAME": filename,
    "LANGUAGE": lambda: same(rng.choice(["Spanish", "Mandarin", "Portuguese", "Arabic", "Hindi", "Korean"])),
    "RELIGION": lambda: same(rng.choice(["Catholic", "Jewish", "Muslim", "Buddhist", "Hindu", "Lutheran"])),
    "ZODIAC_SIGN": lambda: same(rng.choice(["Aquarius", "Leo", "Virgo", "Sagittarius", "Gemini"])),
    "MARITAL_STATUS": lambda: same(rng.choice(["married", "divorced", "single", "widowed"])),
    "GENDER": lambda: same(rng.choice(["female", "male"])), "BLOOD_TYPE": lambda: rng.choice([("O negative", "o negative"), ("AB positive", "a b positive"), ("A+", "a positive"), ("B negative", "b negative")]),
    "ORIGIN": lambda: same(rng.choice(["Italian", "Nigerian", "Polish", "Korean", "Mexican"])),
    "SEXUALITY": lambda: same(rng.choice(["gay", "bisexual", "lesbian"])),
    "POLITICAL_AFFILIATION": lambda: same(rng.choice(["Republican", "Democrat"])),
}
RENAMED = {"FIRST": "NAME", "LAST": "NAME", "IBAN": "BANK_ACCOUNT", "DATE_NO_YEAR": "DATE"}
OWN_TEMPLATES = """
Hello, this is {FIRST} from customer care, how can I help you today?
Sure, my name is {NAME} and I'm calling about a bill.
Could I speak to Mr. {LAST}, please?
Yes, you can reach me on {PHONE_NUMBER} after lunch.
The best number is {PHONE_NUMBER}, that's my cell.
Please call {FIRST} back at {PHONE_NUMBER} before noon.
You can send it to {EMAIL_ADDRESS} and I will have a look.
My email is {EMAIL_ADDRESS}.
We put everything on {URL} so that you can read it again.
The printer is at {IP_ADDRESS} and does not answer.
Okay, the card number is {CREDIT_CARD} and it is a company card.
It ends soon, the expiration date is {CREDIT_CARD_EXPIRATION} and the security code is {CVV}.
The card is {CREDIT_CARD}, expires {CREDIT_CARD_EXPIRATION}, and the CVV is {CVV}.
Please transfer the rest to {IBAN} by the end of the week.
The routing number is {ROUTING_NUMBER} and the account number is {BANK_ACCOUNT}.
I have your account number here as {ACCOUNT_NUMBER}, is that still right?
For the record my social security number is {SSN}.
The last thing I need is your social. It's {SSN}.
I was born on {DOB} in {LOCATION_CITY}.
And your date of birth? {DOB}.
We moved in on {DATE} and it has been cold ever since.
The hearing is set for {DATE_NO_YEAR} in the morning.
Let's meet on {DAY} at {TIME}.
The store closes every {DAY} at {TIME} in winter.
It happened back in {YEAR} when nobody was looking.
In {MONTH} we usually have more visitors than staff.
The whole repair took {DURATION} and nobody told us why.
She is {AGE} years old and still drives to work.
I turned {AGE} last week.
He paid {MONEY} for a table that wobbles.
They want {MONEY} up front and the rest later.
My zip code is {LOCATION_ZIP}.
The boat is at {LOCATION_COORDINATE} and drifting.
I live at {LOCATION_ADDRESS} with two dogs.
Send the parcel to {LOCATION_ADDRESS}, please.
We flew from {LOCATION_CITY} to {LOCATION_CITY} without luggage.
My sister has a farm in {LOCATION_STATE} and another one in {LOCATION_COUNTRY}.
Shipping to {LOCATION_COUNTRY} takes longer than we thought.
His passport number is {PASSPORT_NUMBER}.
My driver's license number is {DRIVER_LICENSE}.
The license plate of the other car was {VEHICLE_ID}.
The member ID on my insurance card is {HEALTHCARE_NUMBER}.
The username is {USERNAME} and the password is {PASSWORD}.
Log in with the password {PASSWORD} and change it at once.
Open {FILENAME} and look at the second page.
My mother speaks {LANGUAGE} at home.
I was raised {RELIGION} but I don't go often.
I'm a {ZODIAC_SIGN} so of course I am stubborn.
Are you {MARITAL_STATUS}? No, I am {MARITAL_STATUS}.
The patient is {GENDER} and in good health.
My blood type is {BLOOD_TYPE}.
My grandparents are {ORIGIN} and cook like it.
He is {SEXUALITY} and told his parents last year.
My uncle is a registered {POLITICAL_AFFILIATION}.
{FIRST} and {FIRST} went to the lake with Dr. {LAST}.
I spoke with {NAME} about the {DAY} delivery, and {FIRST} will follow up by {DATE_NO_YEAR}.
Thanks, {FIRST}. Have a great day.
Is {FIRST} there? No, {FIRST} left at {TIME}.
"""


def made(template, values, form):
    """The sentence in this form."""
    chosen = []

    def placed(match):
        kind, value = values[match[1]]
        chosen.append((kind, value()))
        return f"\x00{len(chosen) - 1}\x00"

    marked = re.sub(r"\{\{?([A-Za-z_]+)\}?\}", placed, template)
    parts = marked.split("\x00")
    out = []
    for at, part in enumerate(parts):
        if at % 2:
            kind, (written, spoken) = chosen[int(part)]
            value = written if form == "written" else re.sub(r"\s+", " ", spoken).strip()
            out.append(value if kind is None else f"{{{kind}|{value}}}")
        elif form == "written":
            out.append(part)
        else:
            # A possessive belongs to the word before it.
            possessive = re.match(r"'s\b", part)
            out.append(("\x01's " + plain(part[2:]) if possessive else " " + plain(part)) + " ")
    text = "".join(out)
    if form == "spoken":
        text = re.sub(r"\s+", " ", text).replace(" \x01", "").replace("\x01", "").strip()
    return re.sub(r"\s+", " ", text).strip()


def main():
    # Its modules import more than is needed here: only the file is read.
    folder = os.path.dirname(importlib.util.find_spec("presidio_evaluator").origin)
    with open(f"{folder}/data_generator/raw_data/templates.txt", encoding="utf-8") as file:
        theirs = [line.strip().strip('"').replace("\\n", " ") for line in file if line.strip()]
    own_values = {name: (RENAMED.get(name, name), value) for name, value in OWN.items()}
    for form in ("written", "spoken"):
        for template in theirs:
            print(form, "presidio", made(template, PRESIDIO, form), sep="\t")
        for template in OWN_TEMPLATES.strip().splitlines():
            for _ in range(3):
                print(form, "own", made(template, own_values, form), sep="\t")


main()
