//! Words that prose is made of.

/// Common English words, roughly the most common first, and some of programming.
pub(crate) const WORDS: &str = "\
    the of and to in is that for it as was with be by on not he this are or his from at which but have an \
    had they you were their one all we can her has there been if more when will would who so no out up into \
    what than its about them some could time two may then do first any my now such like our over man me even \
    most made after also did many before must through back years where much your way well down should because \
    each just those people how too little state good very make world still own see men work long get here \
    between both life being under never day same another know while last might us great old year off come \
    since against go came right used take three small large place found water house every number part without \
    around however home say again think early second word line until during few set point name end hand high \
    system program question write read next number both often together asked turned begin example under group \
    always music those mark book letter mile river car feet care plain girl usual young ready above ever red \
    list though feel talk bird soon body dog family direct leave song measure door product black short class \
    wind happen complete ship area half rock order fire south problem piece told knew pass top whole king \
    space heard best hour better true hundred five remember step hold west ground interest reach fast sing \
    listen six table travel less morning ten simple several vowel toward war lay pattern slow center love \
    person money serve appear road map rain rule govern pull cold notice voice energy hunt probable bed \
    brother egg ride cell believe perhaps pick sudden count square reason length represent art subject region \
    size vary settle speak weight general ice matter circle pair include divide felt grand ball yet wave drop \
    heart present heavy dance engine position arm wide sail material return value function let string struct \
    public static void const import self null false print error index array type model token text data file \
    hello sky blue why colour light answer user system what";
