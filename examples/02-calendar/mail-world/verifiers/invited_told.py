"""Half a point for each of the two meetings of which one mail told the right people."""

MEETINGS = {"Hiring panel": {"nadia", "tom"}, "Vendor call": {"maya"}}


def verify(world, trajectory):
    told = sum(
        [addressed(each) for each in sent(world, title)] == [people]
        for title, people in MEETINGS.items()
    )
    return told / len(MEETINGS)


def sent(world, title):
    statement = """SELECT id FROM mail_messages
        WHERE folder = 'sent' AND instr(lower(subject), lower(?)) LIMIT 2"""
    return [world.find_one("mail_messages", **row) for row in world.sql(statement, (title,))]


def addressed(message):
    return {address.removesuffix("@northwind.example") for address in message["recipients"]}
